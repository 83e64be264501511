"""How far something is: values that are others whenever there is something new to be shown (parts/redrawing.py)."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from dashboard.server.background import pool, torch
from transformer.training import lock
from transformer.training.runs import Run

SIGNS_OF_LIFE = ("state.json", lock.NAME)
"""Files of a run that are written again and again without saying anything new."""


def stamp(path: Path, without: tuple[str, ...] = ()) -> tuple[object, ...]:
    """When a file was written and how large it is; of a folder, that of all in it but hidden files, which are half
    written, and those named. Empty where nothing is.
    """
    try:
        if not path.is_dir():
            return _stamp(path.stat())
        with os.scandir(path) as entries:
            seen = [each for each in entries if not each.name.startswith(".") and each.name not in without]
            return tuple(sorted((each.name, *_stamp(each.stat())) for each in seen))
    except OSError:  # it is not there, or goes just now
        return ()


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_mtime_ns, found.st_size, found.st_ino


@dataclass(frozen=True)
class Training:
    """How far a training is: its state, its files and its place in the queue; and whether its weights can be read yet.

    Sessions that watch the same one share a look.
    """

    run: Run

    def __call__(self) -> tuple[object, ...]:
        state, readable = self.run.state, torch() is not None
        turn = (pool.place(self.run), pool.preparing(self.run)) if state.status == "queued" else ()
        files = stamp(self.run.folder, SIGNS_OF_LIFE)
        return replace(state, heartbeat=0.0), self.run.waiting, turn, files, readable
