"""What is asked of a training, heeded between its steps: stop, pause, a pace."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from transformer.training.queue.places import Places
from transformer.training.runs import Control, Run
from transformer.training.team import Team

TICK = 0.02
"""Seconds between two looks while waiting: well within what a person calls at once."""
PATIENCE = 600.0
"""Seconds for which a paused training keeps its process; after them it stays paused on disk."""
GO, WAIT, END = range(3)


class Wishes:
    """The run's control file, read when it changes. The leading process decides, and the others follow."""

    def __init__(self, run: Run, team: Team, patience: float = PATIENCE, places: Places | None = None) -> None:
        self.path, self.run, self.team, self.patience = run.folder / "control.json", run, team, patience
        self.places = places
        self.control, self.mark = Control(), (0, 0)
        self.due = 0.0
        self.paused = False
        """Did the last `heed` wait in a pause?"""
        self.tired = False
        """Has a pause outlasted the patience?"""

    def heed(self, step: int, pause: Callable[[], None], beat: Callable[[], None]) -> bool:
        """Wait for as long as is asked for before the step after `step`; False when it is not to be taken.

        Who pauses gives its place to others, and goes on once there is one. `pause` is called when a pause begins,
        `beat` again and again while it lasts.
        """
        self.paused, began = False, 0.0
        while True:
            word = self.team.agree(self._word(step) if self.team.leads else GO)
            if word == END:
                return False
            if word == GO:
                self._pace()
                return True
            if self.team.leads:
                now = time.monotonic()
                if not self.paused:
                    pause()
                    began = now
                    if self.places is not None:
                        self.places.give()
                beat()
                self.tired = now - began > self.patience
                time.sleep(TICK)
            self.paused = True

    def allowed(self, step: int) -> int:
        """How many steps may be taken before this is asked again: up to a pause, and one by one at a pace."""
        if self.control.pace:
            return 1
        return sys.maxsize if self.control.pause_at is None else max(1, self.control.pause_at - step)

    def _word(self, step: int) -> int:
        self._look()
        wishes = self.control
        if wishes.stop or self.tired:
            return END
        if wishes.pause_at is not None and step >= wishes.pause_at:
            return WAIT
        early = wishes.pace is not None and wishes.pace > 0 and time.monotonic() < self.due
        if early:  # in small bits, so that a wish is heard while it waits for its turn
            time.sleep(min(TICK, max(0.0, self.due - time.monotonic())))
            return self._word(step)
        return GO if self.places is None or self.places.take() else WAIT

    def _pace(self) -> None:
        pace = self.control.pace
        self.due = time.monotonic() + (1 / pace if pace else 0.0)

    def _look(self) -> None:
        """Read the file if it is another one than before; its inode tells, where the clock is too coarse."""
        try:
            found = self.path.stat()
        except OSError:
            return
        if (found.st_mtime_ns, found.st_ino) != self.mark:
            self.mark = (found.st_mtime_ns, found.st_ino)
            self.control = self.run.control
