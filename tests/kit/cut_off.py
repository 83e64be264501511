"""Kills its own process in the midst of a training: at a step, and not at a moment that a fast processor never has.

`python -m tests.kit.cut_off sweep …` is that command of the library; a worker of a cluster takes it as its --preload.
The members are written down after every EVERY steps, and not after some seconds.
"""

import os
import signal
import sys

from transformer.__main__ import main
from transformer.experiments.populations import carry_out
from transformer.experiments.populations.member import Recorder
from transformer.training.loop import Step

EVERY, CUT_OFF = 20, 45
"""After how many steps all is written down, and the step that is the last in the metrics of who is killed."""
WRITTEN = CUT_OFF // EVERY * EVERY
"""The step that was written down last."""


class Pace:
    """Stands in for the pace by the clock."""

    def __init__(self) -> None:
        self.steps = 0

    def due(self) -> bool:
        self.steps += 1
        return self.steps % EVERY == 0

    def wrote(self, was_due: bool) -> None:
        """Nothing: what it takes to write does not matter."""


def add(recorder: Recorder, entry: Step) -> None:
    """Write a step down, and be killed after the last."""
    whole(recorder, entry)
    if entry.step == CUT_OFF:
        os.kill(os.getpid(), signal.SIGKILL)


whole = Recorder.add


def dask_setup(_worker: object = None) -> None:
    """Have it end so; Dask calls this in a worker that has the module as its --preload."""
    Recorder.add = add  # type: ignore[method-assign]
    carry_out._Pace = Pace  # type: ignore[assignment, misc]


if __name__ == "__main__":
    dask_setup()
    sys.exit(main(sys.argv[1:]))
