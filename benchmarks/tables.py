"""Markdown tables of measured numbers, as the benchmarks print them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def spread(values: Sequence[float], digits: int) -> str:
    """Median, least and most, as two cells of a table."""
    low, middle, high = (f"{f(values):,.{digits}f}" for f in (min, statistics.median, max))
    return f"{middle} | {low} to {high}"


def table(*columns: str) -> None:
    print(f"\n| {' | '.join(columns)} |")
    print(f"|---{'|---:' * (len(columns) - 1)}|")
