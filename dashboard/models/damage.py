"""What of a run cannot be used, found once and again when a file of it changes."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass

from transformer.foundation.versions import Memory, Version, is_settled, version_of
from transformer.training import listing, runs
from transformer.training.exchange import inspection
from transformer.training.runs import Run, RunError

MOST_RUNS = 2**14
"""Runs of which it is remembered what is wrong with them."""
Versions = tuple[tuple[str, Version], ...]
"""Every file by its name, and its version."""


@dataclass(frozen=True)
class _Known:
    """What is wrong with a run of these versions, and when it was last looked at."""

    versions: Versions
    faults: tuple[str, ...]
    looked: float
    changes: int


_known: Memory[str, _Known] = Memory(MOST_RUNS)


def faults(run: Run) -> list[str]:
    """A sentence each, as `inspection.faults` says it; nothing while the run is trained, for its files are made now.

    Whoever asks within `listing.SHARED_FOR` is told what the last look found.
    """
    folder, now, changes = str(run.folder), time.monotonic(), runs.changes()
    try:
        known = _known.get(folder)
        if known is None or known.changes != changes or now - known.looked >= listing.SHARED_FOR:
            versions, wall = _versions(folder), time.time_ns()
            if known is None or known.versions != versions or not all(is_settled(each, wall) for _, each in versions):
                if run.state.live:
                    return []
                known = _Known(versions, tuple(inspection.faults(run)), now, changes)
            _known.put(folder, _Known(versions, known.faults, now, changes), 1)
        return list(known.faults) if known.faults and not run.state.live else []
    except (RunError, OSError):  # it has just been taken away
        return []


def _versions(folder: str) -> Versions:
    found = []
    for place in (folder, f"{folder}/snapshots"):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(place) as entries:
            found += [(each.name, version_of(each.stat())) for each in entries]
    found.sort()
    return tuple(found)
