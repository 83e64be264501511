"""How long training processes took to get ready on this machine: remembered for whoever waits for the next one."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
from pathlib import Path

from platformdirs import user_cache_path

from transformer.foundation.atomic_files import write_whole
from transformer.foundation.foreign import DAMAGED, read_record

FILE = "warm-ups.json"
MOST = 9
"""Warm-ups that are remembered: those of the latest servers."""
LONGEST = 3600.0
"""Seconds of one that can be believed."""


def remember(seconds: float) -> None:
    """Add a warm-up. Where nothing can be written, nothing is remembered."""
    with contextlib.suppress(OSError):
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"seconds": [*_seconds(), round(seconds, 2)][-MOST:]}).encode())


def usual() -> float | None:
    """The median of those that are remembered, in seconds; None where none is."""
    found = _seconds()
    return statistics.median(found) if found else None


def _path() -> Path:
    """In $ATTENTION_LAB_CACHE, or the user's cache: it is about this machine, and not about a folder of runs."""
    given = os.environ.get("ATTENTION_LAB_CACHE")
    return (Path(given) if given else user_cache_path("attention-lab")) / FILE


def _seconds() -> list[float]:
    try:
        found = read_record(_path())["seconds"]
        return [float(each) for each in found if 0 < float(each) < LONGEST][-MOST:]
    except (*DAMAGED, OSError):
        return []
