"""What can be said of a population from its seeds, and how surely. No PyTorch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transformer.analysis.findings import Head
from transformer.analysis.intervals import wilson
from transformer.experiments.populations.table import Row

SURE = 0.95
FEWEST = 6
"""Fewer seeds have no 95 % interval of the median: all six lie on one side of it in 2 of 64 cases."""


@dataclass(frozen=True)
class Steps:
    """After how many steps it is solved, over the seeds. One that is not solved counts as later than all steps."""

    seeds: int
    solved: int
    median: float
    """Infinite where fewer than half are solved."""
    low: float
    """The 95 % interval of the median over all seeds there are; nan where too few were tried."""
    high: float
    """Infinite where the interval reaches beyond the steps that were taken."""
    share_low: float
    """The 95 % interval of the share that is solved."""
    share_high: float

    @property
    def share(self) -> float:
        """That is solved."""
        return self.solved / self.seeds


def steps_until_solved(rows: Sequence[Row]) -> Steps:
    """Over the rows that are no failures. Raises ValueError where there is none."""
    counted = [row for row in rows if row.status == "finished"]
    if not counted:
        raise ValueError("nothing has ended yet")
    steps = sorted(float(row.step) if row.solved else math.inf for row in counted)
    solved = sum(row.solved for row in counted)
    low, high = median_interval(steps)
    share_low, share_high = wilson(solved, len(counted))
    return Steps(len(counted), solved, median(steps), low, high, float(share_low), float(share_high))


def median(ordered: Sequence[float]) -> float:
    """The middle of values in ascending order; between two that are not both finite, the greater one."""
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    low, high = ordered[middle - 1], ordered[middle]
    return (low + high) / 2 if math.isfinite(high) else high


def median_interval(ordered: Sequence[float], sure: float = SURE) -> tuple[float, float]:
    """The interval between two of the values, in ascending order, that holds the median with this probability at least.

    It assumes nothing about the distribution: the values below the median are counted as heads of a coin (Thompson,
    1936). nan, nan where there are too few values.
    """
    n = len(ordered)
    beyond, rank = 0.0, 0
    while rank < n // 2:  # the values of this rank and its mirror image still leave enough between them
        beyond += math.comb(n, rank) / 2**n
        if 2 * beyond > 1 - sure:
            break
        rank += 1
    return (math.nan, math.nan) if rank == 0 else (ordered[rank - 1], ordered[n - rank])


def accuracy_band(rows: Sequence[Row], low: float = 0.05, high: float = 0.95) -> np.ndarray:
    """By position over the seeds: the median, and the shares between which nine of ten seeds lie. float [3 target]."""
    return np.quantile([row.accuracy for row in rows if row.correct], (0.5, low, high), axis=0)


@dataclass(frozen=True)
class Frequency:
    """How many heads of a layer do one thing, over the seeds."""

    layer: str
    """ "decoder.0.self_attention"."""
    kind: str
    """As `HeadMetrics.name` calls it."""
    members: int
    """Seeds in which at least one head of the layer does it."""
    seeds: int
    low: float
    """The 95 % interval of the share of such seeds."""
    high: float
    heads: int
    """Heads that do it, over all seeds."""

    @property
    def share(self) -> float:
        """Of seeds in which at least one head of the layer does it."""
        return self.members / self.seeds


def frequencies(rows: Sequence[Row]) -> list[Frequency]:
    """What kinds of heads form in which layer, and in how many seeds; every kind that any seed has."""
    measured = [row for row in rows if row.kinds]
    heads: Counter[tuple[str, str]] = Counter()
    members: Counter[tuple[str, str]] = Counter()
    for row in measured:
        found = [(Head.parse(head).site, kind) for head, kind in (row.kinds or {}).items()]
        heads.update(found)
        members.update(set(found))
    made = []
    for (layer, kind), count in sorted(members.items()):
        low, high = wilson(count, len(measured))
        made.append(Frequency(layer, kind, count, len(measured), float(low), float(high), heads[layer, kind]))
    return made
