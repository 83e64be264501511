"""What became of a population, in words that say how many seeds there are and how sure the numbers are."""

from __future__ import annotations

import math
from collections.abc import Sequence

from transformer.experiments.populations.statistics import FEWEST, Steps, steps_until_solved
from transformer.experiments.populations.table import Row
from transformer.foundation.words import counted


def number(steps: float) -> str:
    """A number of steps, which may lie between two: "30", "30.5", "2,000"."""
    return f"{steps:,.1f}".removesuffix(".0")


def budget(rows: Sequence[Row]) -> str:
    """How many steps those took that did not solve it: "60 steps"; empty where all did."""
    taken = sorted({row.step for row in rows if row.status == "finished" and not row.solved})
    if not taken:
        return ""
    return f"{f'{taken[0]:,} to ' if len(taken) > 1 else ''}{taken[-1]:,} steps"


def steps_interval(steps: Steps, most: str) -> str:
    """The interval of the median; `most` is what those took that did not solve it. Where there is none, why not."""
    if math.isnan(steps.low):
        return f"fewer than {FEWEST} seeds have no 95 % interval of the median"
    if math.isinf(steps.low):
        return f"95 % interval: more than {most}"
    high = number(steps.high) if math.isfinite(steps.high) else f"more than {most}"
    return f"95 % interval {number(steps.low)} to {high}"


def outcome(rows: Sequence[Row]) -> str:
    """What became of the rows that are no failures: "64 of 64 seeds, after 30 steps in the median (…)"."""
    steps, most = steps_until_solved(rows), budget(rows)
    said = f"{steps.solved} of {counted(steps.seeds, 'seed')}"
    if not steps.solved:
        return f"{said} within {most}"
    if math.isinf(steps.median):
        return f"{said} within {most}; the median is more than that ({steps_interval(steps, most)})"
    return f"{said}, after {number(steps.median)} steps in the median ({steps_interval(steps, most)})"
