"""TensorBoard events beside the metrics, when TensorBoard is installed."""

from __future__ import annotations

import contextlib
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from transformer.training.loop import Step


class Events:
    """Writes each step's numbers into the run folder, where `tensorboard --logdir checkpoints` finds them."""

    def __init__(self, folder: Path | None) -> None:
        self.writer: Any = None
        if folder is not None and installed():
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(str(folder / "tensorboard"))

    def add(self, step: Step) -> None:
        if self.writer is None:
            return
        values = {
            "loss": step.loss,
            "learning_rate": step.learning_rate,
            "gradient_norm": step.gradient_norm,
            "milliseconds": step.milliseconds,
        }
        if step.accuracy is not None:
            half = len(step.accuracy) // 2
            values |= {
                "accuracy/first half": step.accuracy[:half].mean(),
                "accuracy/second half": step.accuracy[half:].mean(),
            }
        try:
            for name, value in values.items():
                self.writer.add_scalar(name, value, step.step)
        except OSError:  # these are an extra: where they cannot be written, the training goes on without
            self.writer = None

    def __enter__(self) -> Events:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.writer is not None:
            with contextlib.suppress(OSError):
                self.writer.close()


def installed() -> bool:
    return find_spec("tensorboard") is not None
