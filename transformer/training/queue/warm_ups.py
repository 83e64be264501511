"""How long training processes took to get ready on this machine: remembered for whoever waits for the next one."""

from __future__ import annotations

import statistics

from transformer.foundation import machine
from transformer.foundation.foreign import DAMAGED

FILE = "warm-ups.json"
MOST = 9
"""Warm-ups that are remembered: those of the latest servers."""
LONGEST = 3600.0
"""Seconds of one that can be believed."""


def remember(seconds: float) -> None:
    """Add a warm-up. Where nothing can be written, nothing is remembered."""
    machine.remember(FILE, {"seconds": [*_seconds(), round(seconds, 2)][-MOST:]})


def usual() -> float | None:
    """The median of those that are remembered, in seconds; None where none is."""
    found = _seconds()
    return statistics.median(found) if found else None


def _seconds() -> list[float]:
    try:
        return [float(each) for each in machine.recall(FILE)["seconds"] if 0 < float(each) < LONGEST][-MOST:]
    except DAMAGED:
        return []
