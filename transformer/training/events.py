"""TensorBoard events beside the metrics, when TensorBoard is installed."""

from __future__ import annotations

import contextlib
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from transformer.config import RunConfig
from transformer.training.loop import Step


class Events:
    """Writes each step's numbers into the run folder, where `tensorboard --logdir checkpoints` finds them.

    They are written here and now: the writer that comes with PyTorch does it in a thread of its own, and hangs for
    ever where the disk is full. What was written of steps after `step`, before a resume, is declared void.
    """

    def __init__(self, folder: Path | None, step: int, config: RunConfig) -> None:
        self.writer: Any = None
        task = config.build_task()
        self.groups = np.array(task.groups(task.length))
        self.parts = task.parts
        if folder is not None and installed():
            from tensorboard.compat.proto.event_pb2 import SessionLog
            from tensorboard.summary.writer.record_writer import RecordWriter

            with contextlib.suppress(OSError):  # these are an extra: without them the training goes on
                (folder / "tensorboard").mkdir(exist_ok=True)
                name = f"events.out.tfevents.{time.time():.6f}"
                self.writer = RecordWriter((folder / "tensorboard" / name).open("wb"))
                self._write(0, file_version="brain.Event:2")
                self._write(step + 1, session_log=SessionLog(status=SessionLog.START))

    def add(self, step: Step) -> None:
        if self.writer is None:
            return
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = {
            "loss": step.loss,
            "learning_rate": step.learning_rate,
            "gradient_norm": step.gradient_norm,
            "milliseconds": step.milliseconds,
        }
        if step.accuracy is not None:
            shares = {part: step.accuracy[self.groups == part] for part in self.parts}
            values |= {f"accuracy/{part}": float(share.mean()) for part, share in shares.items() if len(share)}
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in values.items()])
        try:
            self._write(step.step, summary=summary)
            if step.accuracy is not None:
                self.writer.flush()
        except OSError:
            with contextlib.suppress(OSError):
                self.writer.close()
            self.writer = None

    def _write(self, step: int, **content: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self.writer.write(Event(wall_time=time.time(), step=step, **content).SerializeToString())

    def __enter__(self) -> Events:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.writer is not None:
            with contextlib.suppress(OSError):
                self.writer.close()


def installed() -> bool:
    return find_spec("tensorboard") is not None
