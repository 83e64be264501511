"""Trainings on square corners that are watched while they run, and what of them is in view.

A training runs behind the page, some seconds long; whoever looks sees how far it is. PyTorch is imported there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import wait
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from dashboard.models import background
from dashboard.models.cache import cached
from transformer.corners import FEWEST, CornerConfig, Walks, every_walk

if TYPE_CHECKING:
    from transformer.recurrent.corners import CornerStep


ATTENTION = "none"
"""The page's choice: first the one vector that is handed over, then what attention adds."""
EVERY = 10
"""Steps between two that are recorded."""
WATCHED = 8.0
"""Seconds of a training, or of a replay, that is made to be watched."""
AT_ONCE = 0.1
"""Seconds for which a page waits for a training: what is kept is there at once, the rest is seen while it comes."""
ROLLED = 8
"""Numbers of the widest state that is shown number by number; of wider ones no weights are kept."""
STARTS = ("lower left", "upper left", "upper right", "lower right")
TURNS = {1: "clockwise", -1: "anticlockwise"}


# --- trainings under way


class Lesson:
    """One training; made to last so many seconds if it is to be watched."""

    def __init__(self, config: CornerConfig, seconds: float = 0.0) -> None:
        self.config = config
        self.steps: list[CornerStep] = []
        """Recorded so far."""
        self._seconds = seconds
        self._ended = Event()
        self._future = (background.WATCHED if seconds > 0 else background.LESSONS).submit(self._run)

    @property
    def running(self) -> bool:
        return not self._future.done()

    @property
    def failure(self) -> str:
        """Why it broke off, if it did."""
        return background.problem(self._future)

    def stop(self) -> None:
        """End it; what it has recorded stays."""
        self._ended.set()
        self.wait()

    def wait(self, seconds: float | None = None) -> None:
        """For its end, but no longer."""
        wait([self._future], seconds)

    def _run(self) -> None:
        for step in self._taken():
            self.steps.append(step if self.config.d_model <= ROLLED else replace(step, weights={}))

    def _taken(self) -> Iterator[CornerStep]:
        """The recorded steps, each in its time."""
        from transformer.recurrent.corners import build_walker, train_corners

        config, began = self.config, time.monotonic()
        shown = every_walk(config.most, config.noise)
        for step in train_corners(build_walker(config), EVERY, shown):
            if step.error is None:
                continue
            yield step
            early = began + self._seconds * step.step / config.steps - time.monotonic()
            if self._ended.wait(max(0.0, early)):
                return


@dataclass(frozen=True)
class Replay:
    """The steps of a training once more, in the time of one that is watched."""

    lesson: Lesson
    began: float
    seconds: float = WATCHED

    @property
    def config(self) -> CornerConfig:
        return self.lesson.config

    @property
    def steps(self) -> list[CornerStep]:
        return self.lesson.steps[: max(1, round(self._done * len(self.lesson.steps)))]

    @property
    def running(self) -> bool:
        return self._done < 1

    @property
    def _done(self) -> float:
        """The share of its time that has passed."""
        return min(1.0, (time.monotonic() - self.began) / self.seconds) if self.seconds > 0 else 1.0


_failed: dict[CornerConfig, int] = {}
"""How often a training of these settings broke off."""


def taught(config: CornerConfig) -> Lesson:
    """A training at full speed, begun when it is first asked for, and waited for a moment; everybody's.

    One that broke off is shown to whoever asks first, and then begun anew.
    """
    times = _failed.get(config, 0)
    lesson = _begun(config, times)
    lesson.wait(AT_ONCE)
    if lesson.failure and not lesson.running:
        _failed[config] = times + 1
    return lesson


@cached(32)
def _begun(config: CornerConfig, failed: int) -> Lesson:
    """The training after so many that `failed`."""
    return Lesson(config)


# --- what is in view


@dataclass(frozen=True, eq=False)
class View:
    """One step of a training, seen from one walk."""

    config: CornerConfig
    walks: Walks
    """All that are drawn."""
    walk: int
    step: CornerStep | None
    """None where there is none yet."""

    @property
    def given(self) -> int:
        return int(self.walks.given[self.walk])

    @property
    def alike(self) -> np.ndarray:
        """The eight walks of as many given corners, int [walk], clockwise first."""
        return np.flatnonzero(self.walks.given == self.given)

    @property
    def said(self) -> np.ndarray | None:
        """Of all walks, float [walk, 2, 2]."""
        return None if self.step is None else self.step.said

    @cached_property
    def patterns(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Of attention: the alignment in this walk, and the mean over fresh ones of its kind, float [2, given]."""
        if self.step is None or self.step.pattern is None or self.step.mean_pattern is None:
            return None
        return (
            self.step.pattern[self.walk, :, : self.given],
            self.step.mean_pattern[self.given - FEWEST, :, : self.given],
        )

    @property
    def off(self) -> np.ndarray | None:
        """How far each said corner is from the true one, float [2]."""
        if self.said is None:
            return None
        return np.sqrt(((self.said[self.walk] - self.walks.target[self.walk]) ** 2).sum(axis=-1))


def name_of(start: int, turn: int) -> str:
    """A walk, by its first corner and the way it goes round."""
    return f"{STARTS[start]}, {TURNS[turn]}"


def kinds() -> dict[str, tuple[int, int]]:
    """All eight walks: the start and the turn of each name."""
    return {name_of(start, turn): (start, turn) for turn in TURNS for start in range(len(STARTS))}
