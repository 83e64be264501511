"""What was seen of a model that is not ours: every attention's tensors, by the name of the module that attended."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from torch import Tensor, nn

from transformer.observation import Seen

ATTENTION = re.compile("attn|attention", re.IGNORECASE)
"""A class whose name has this in it is expected to attend."""


@dataclass(frozen=True)
class Captured(Seen):
    """One forward pass of any model: what it returned, and what was seen of its attention on the way.

    `seen["h.0.attn.pattern"]` is the tensor at a site; one that is not there raises KeyError.
    """

    sites: dict[str, Tensor]
    """In order of the calls, named as the model names its modules: "h.0.attn.pattern" [batch, head, query, key]. Beside
    it, where they were seen, `query`, `key`, `value` and `z` [batch, head, position, d_head], `scores` before the mask
    and `mask`, True where a query may see a key. A module that is called again has "#2" behind its name."""
    output: Any
    """What the model returned, as it returned it."""
    unseen: tuple[str, ...]
    """A sentence for each part that looks as if it attended, and in which nothing was seen."""


class Notes:
    """Where one capture writes down what it sees. It belongs to one call and to one thread."""

    def __init__(self, model: object) -> None:
        self.modules = dict(model.named_modules()) if isinstance(model, nn.Module) else {}
        self.names = {id(module): name for name, module in self.modules.items()}
        self.sites: dict[str, Tensor] = {}
        self.calls: Counter[str] = Counter()
        self.missed: dict[str, str] = {}
        self.paused = False

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Look away: what is computed meanwhile is written down by whoever pauses."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def caller(self) -> nn.Module | None:
        """The innermost of the model's modules that is at work on this thread, found on the stack."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            owner = frame.f_locals.get("self")
            if isinstance(owner, nn.Module) and id(owner) in self.names and not isinstance(owner, nn.Softmax):
                return owner
            frame = frame.f_back
        return None

    def write(self, module: nn.Module | None, **seen: Tensor) -> None:
        """Keep what one call of attention computed."""
        name = self._name(module)
        self.calls[name] += 1
        called = self._spoken(name) + (f"#{self.calls[name]}" if self.calls[name] > 1 else "")
        self.sites |= {f"{called}.{kind}": tensor.detach() for kind, tensor in seen.items()}

    def miss(self, module: nn.Module | None, why: str) -> None:
        """Say what was met and could not be seen."""
        self.missed[self._name(module)] = why

    def unseen(self) -> tuple[str, ...]:
        """What was met and could not be seen; then the outermost modules that look as if they attended, unseen."""
        words = [f"{self._spoken(name)}: {why}." for name, why in self.missed.items()]
        met = {*self.calls, *self.missed}
        silent: list[str] = []
        for name, module in self.modules.items():
            kin = (_within(place, name) or (place and _within(name, place)) for place in met)
            if (
                ATTENTION.search(type(module).__name__)
                and not any(kin)
                and not any(_within(name, one) for one in silent)
            ):
                silent.append(name)
                words.append(
                    f"{self._spoken(name)} ({type(module).__name__}): no attention was seen in it. It was not called, "
                    "or is compiled, or computes by a kernel of its own."
                )
        return tuple(words)

    def _name(self, module: nn.Module | None) -> str:
        return "" if module is None else self.names.get(id(module), "")

    def _spoken(self, name: str) -> str:
        return name or (type(self.modules[""]).__name__ if self.modules else "attention")


def _within(inner: str, outer: str) -> bool:
    return not outer or inner == outer or inner.startswith(f"{outer}.")
