"""The training process: a warm spare that has already paid for importing PyTorch, and waits for a job on its stdin.

`python -m transformer.training.worker` prints "ready" and reads one line: the run folder to train. A plain
subprocess, not multiprocessing, whose children would run the Streamlit script again.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

from transformer.training.runs import Run


def warm_up() -> None:
    """Pay for everything that is slow only once: torch, torch._dynamo, the first steps, the CUDA context."""
    import torch
    import torch._dynamo  # imported lazily, at 1.2 s, by the first optimiser that steps

    from transformer.config import RunConfig, TrainingConfig
    from transformer.model import build
    from transformer.training.device import resolve_device
    from transformer.training.loop import train

    torch.set_num_threads(1)  # toys: two threads lose everything to a busy neighbour
    config = RunConfig(training=TrainingConfig(max_steps=2, evaluate_every=1))
    for _ in train(build(config).to(resolve_device()), config):
        pass


def main() -> None:
    warm_up()
    print("ready", flush=True)
    line = sys.stdin.readline().strip()
    if not line:
        return
    from transformer.training.recording import record

    with contextlib.suppress(Exception):  # the run folder has the reason; nobody reads this process's stderr
        for _ in record(Run(Path(line))):
            pass


class Spare:
    """One warm worker process, ready before it is needed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "transformer.training.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def train(self, run: Run) -> None:
        """Hand over the job; the process trains on by itself, whoever leaves. Raises BrokenPipeError if it is dead."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{run.folder}\n")
        self.process.stdin.close()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the process has ended, or for some seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def dismiss(self) -> None:
        """End a spare that got no job."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait(timeout=30)


if __name__ == "__main__":
    main()
