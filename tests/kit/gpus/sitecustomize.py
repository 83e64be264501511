"""A GPU that PyTorch sees and that cannot be used: an old one, one that is full, one whose driver is too old.

Python imports a module of this name by itself where it finds one, so a process begun with `environment` sees that GPU
as soon as it imports PyTorch. Each question to CUDA is a line of the log: which program asked what, whether the GPU is
hidden from it, and the file that asked.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

KIND, LOG = "ATTENTION_LAB_TEST_GPU", "ATTENTION_LAB_TEST_GPU_LOG"
TITLE = "Tesla V100-SXM2-32GB"
ASKED = ("is_available", "device_count", "get_device_name", "init", "_lazy_init", "current_device", "synchronize")
"""What of torch.cuda talks to the driver."""
SAYS = {
    "unusable": "CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be …",
    "full": "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 4.00 GiB of which 0 is free",
    "taken": "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
    "old driver": "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver …",
    "none": "No CUDA GPUs are available",
}
"""What is raised where somebody computes on it, in CUDA's and PyTorch's own words."""


def environment(kind: str, log: Path | None = None) -> dict[str, str]:
    """What to add to the environment of a process that is to see such a GPU."""
    found = {"PYTHONPATH": str(Path(__file__).parent), KIND: kind}
    return found | ({} if log is None else {LOG: str(log)})


def install(torch: Any, kind: str, put: Callable[[Any, str, Any], object]) -> None:
    """Let PyTorch, which was made for the CPU, see it; `put` sets an attribute, as monkeypatch does."""

    def hidden() -> bool:
        return os.environ.get("CUDA_VISIBLE_DEVICES") == ""

    def seen() -> int:
        return int(kind not in ("old driver", "none") and not hidden())

    def told(name: str, answer: Callable[[], Any]) -> Callable[..., Any]:
        def asked(*_: Any, **__: Any) -> Any:
            if path := os.environ.get(LOG):
                who = sys._getframe(1).f_code.co_filename
                with open(path, "a") as file:
                    file.write(f"{Path(sys.argv[0]).name} {name} {'hidden' if hidden() else 'seen'} {who}\n")
            return answer()

        return asked

    def fails() -> None:
        raise RuntimeError(SAYS["none" if hidden() else kind])

    answers: dict[str, Callable[[], Any]] = {
        "is_available": lambda: bool(seen()),
        "device_count": seen,
        "get_device_name": lambda: TITLE if seen() else fails(),
    }
    for name in ASKED:
        put(torch.cuda, name, told(name, answers.get(name, fails)))
    put(torch.version, "cuda", "13.0")
    _as_after_a_fork(torch, seen, put)


def _as_after_a_fork(torch: Any, seen: Callable[[], int], put: Callable[[Any, str, Any], object]) -> None:
    """Let backward fail in a child whose parent ran it with a GPU in sight, as PyTorch does: it had a thread for it."""
    own, began = torch.autograd.backward, list[int]()

    def backward(*args: Any, **kwargs: Any) -> None:
        if seen() and not began:
            began.append(os.getpid())
        if began and began[0] != os.getpid():
            raise RuntimeError("Unable to handle autograd's threading in combination with fork-based multiprocessing.")
        own(*args, **kwargs)

    put(torch.autograd, "backward", backward)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds PyTorch as ever, and adds the GPU once it is imported."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        assert spec is not None
        assert spec.loader is not None
        run = spec.loader.exec_module

        def with_gpu(module: Any) -> None:
            run(module)
            install(module, os.environ[KIND], setattr)

        spec.loader.exec_module = with_gpu  # type: ignore[method-assign]
        return spec


if __name__ == "sitecustomize" and KIND in os.environ:
    sys.meta_path.insert(0, _Finder())
