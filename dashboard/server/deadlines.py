"""Until when a training may go on: the server ends it by its own clock, for a tab that is hidden asks for nothing."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from threading import Lock, Timer

from dashboard.server import background
from transformer.training.runs import Run

log = logging.getLogger(__name__)


class Deadlines:
    """The trainings that are given so many seconds; those that took longer are ended.

    The time counts from when a training was asked for, waiting for its turn included. One whose steps somebody takes by
    hand, or at a pace, has all the time it needs.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._timers: dict[Path, Timer] = {}
        self._ends: dict[Path, float] = {}
        self._cut: dict[Path, int] = {}

    def set(self, run: Run, began: float, seconds: int | None) -> None:
        """Give a training so many seconds, None for all it needs. It `began` then, by time.monotonic."""
        ends = None if seconds is None or not _at_full_speed(run) else began + seconds
        with self._lock:
            if ends == self._ends.get(run.folder):
                return
            self._forget(run)
            if seconds is None or ends is None:
                return
            left = ends - time.monotonic()
            if left > 0:
                timer = self._timers[run.folder] = Timer(left, self._end, (run, seconds))
                self._ends[run.folder] = ends
                timer.daemon = True
                timer.start()
        if left <= 0:
            self._end(run, seconds)

    def seconds_of_cut(self, run: Run) -> int | None:
        """After how many seconds a training was ended here; None if it was not."""
        return self._cut.get(run.folder)

    def begin(self, run: Run) -> None:
        """Forget what was of a training that begins, or that begins anew."""
        with self._lock:
            self._forget(run)
            self._cut.pop(run.folder, None)

    def _forget(self, run: Run) -> None:
        self._ends.pop(run.folder, None)
        if timer := self._timers.pop(run.folder, None):
            timer.cancel()

    def _end(self, run: Run, seconds: int) -> None:
        with self._lock:
            self._forget(run)
            if not _at_full_speed(run):
                return
            self._cut[run.folder] = seconds
        try:
            background.end(run)
        except OSError as error:
            log.warning(f"{run.name} was not stopped after {seconds} s: {error}")


def _at_full_speed(run: Run) -> bool:
    control = run.control
    return run.state.status in ("queued", "running") and control.pace is None and control.pause_at is None


deadlines = Deadlines()
"""Those of this server."""
