"""What of a run cannot be used, found once and again when a file of it changes."""

from __future__ import annotations

import os
import time

from transformer.foundation.versions import Memory, Version, is_settled, version_of
from transformer.training.exchange import inspection
from transformer.training.runs import Run, RunError

MOST_RUNS = 2**14
"""Runs of which it is remembered what is wrong with them."""
_known: Memory[str, tuple[tuple[tuple[str, Version], ...], list[str]]] = Memory(MOST_RUNS)


def faults(run: Run) -> list[str]:
    """A sentence each, as `inspection.faults` says it; nothing while the run is trained, for its files are made now."""
    try:
        if run.state.live:
            return []
        folder, now = str(run.folder), time.time_ns()
        versions = _versions(folder)
        known = _known.get(folder)
        if known is None or known[0] != versions or not all(is_settled(each, now) for _, each in versions):
            known = versions, inspection.faults(run)
            _known.put(folder, known, 1)
        return list(known[1])
    except (RunError, OSError):  # it has just been taken away
        return []


def _versions(folder: str) -> tuple[tuple[str, Version], ...]:
    """Every file by its name, and its version."""
    found = []
    for place in (folder, f"{folder}/snapshots"):
        if os.path.isdir(place):
            with os.scandir(place) as entries:
                found += [(each.name, version_of(each.stat())) for each in entries]
    return tuple(sorted(found))
