"""What of a run cannot be used, found once and again when a file of it changes."""

from __future__ import annotations

import os
from pathlib import Path

from dashboard.models.cache import cached
from transformer.training.exchange import inspection
from transformer.training.runs import Run, RunError


def faults(run: Run) -> list[str]:
    """A sentence each, as `inspection.faults` says it; nothing while the run is trained, for its files are made now."""
    try:
        return [] if run.state.live else _faults(str(run.folder), _stamps(run.folder))
    except (RunError, OSError):  # it has just been taken away
        return []


@cached(256)
def _faults(folder: str, stamps: tuple[tuple[str, int, int], ...]) -> list[str]:
    return inspection.faults(Run(Path(folder)))


def _stamps(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Every file with when it was written and how long it is."""
    found = []
    for place in (folder, folder / "snapshots"):
        if place.is_dir():
            with os.scandir(place) as entries:
                found += [(each.name, each.stat().st_mtime_ns, each.stat().st_size) for each in entries]
    return tuple(sorted(found))
