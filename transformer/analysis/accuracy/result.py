"""Accuracy by position as a result: the counts, the interval and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from transformer.analysis.accuracy import ceilings
from transformer.analysis.intervals import Z999, wilson
from transformer.config import RunConfig
from transformer.tasks import Task

CAUTION = 4.0
"""Standard errors behind a verdict: with the usual 1.96, one honest mask in thirty was said to leak."""


@dataclass(frozen=True)
class Accuracy:
    """Accuracy by position, as counts: nothing is lost, and the interval follows."""

    correct: Int[np.ndarray, "target"]
    sequences: int
    names: tuple[str, ...]
    groups: tuple[str, ...]
    chance: float
    exact: int
    """Sequences whose whole answer is right."""

    @classmethod
    def from_evaluation(cls, evaluation: Mapping[str, Any], task: Task) -> Accuracy:
        """What a run's `evaluation.json` holds: its final weights, at the task's greatest length."""
        return cls(
            correct=np.array(evaluation["correct"]),
            sequences=evaluation["sequences"],
            names=task.target_names(task.length),
            groups=task.groups(task.length),
            chance=task.chance,
            exact=round(evaluation["exact_match"] * evaluation["sequences"]),
        )

    @property
    def mean(self) -> Float[np.ndarray, "target"]:
        return self.correct / self.sequences

    def interval(self) -> tuple[Float[np.ndarray, "target"], Float[np.ndarray, "target"]]:
        """95 % Wilson score interval of each position (Wilson, 1927)."""
        return wilson(self.correct, self.sequences)

    def beyond(self, ceiling: Float[np.ndarray, "target"]) -> Bool[np.ndarray, "target"]:
        """Positions that are right more often than `ceiling` allows, beyond the 99.9 % interval: something leaks."""
        return wilson(self.correct, self.sequences, Z999)[0] > ceiling

    def of(self, group: str) -> float:
        """Mean accuracy over the positions of a group; nan when it has none."""
        chosen = self.where(group)
        return float(self.mean[chosen].mean()) if chosen.any() else math.nan

    def where(self, group: str) -> Bool[np.ndarray, "target"]:
        return np.array([name == group for name in self.groups])


def verdict(accuracy: Accuracy, config: RunConfig) -> str:
    """What the numbers say about the mask and the training, in one sentence.

    "At chance" and "beyond" are statistical: a group is compared through the interval of its mean, CAUTION wide.
    """
    length = len(accuracy.names) // 2 if "SEP" in accuracy.names else len(accuracy.names)
    honest = ceilings.honest_ceiling(config, length).accuracy
    limited = bool((honest < 1).any())
    parts, leaks, short = [], False, False
    for group in ("second half", "first half"):
        chosen = accuracy.where(group)
        if not chosen.any():
            continue
        low, high = wilson(int(accuracy.correct[chosen].sum()), accuracy.sequences * int(chosen.sum()), CAUTION)
        share, ceiling = accuracy.of(group), float(honest[chosen].mean())
        at_chance = low <= accuracy.chance <= high
        leaks |= bool(low > ceiling)
        short |= bool(high < ceiling - 0.005)
        parts.append(f"{group} {share:.2f}{' = chance' if at_chance else ''}")
    words = ", ".join(parts)
    if leaks:
        return f"{words}, chance {accuracy.chance:.2f}: your mask leaks"
    if short:
        return f"{words}, chance {accuracy.chance:.2f}: not yet at the ceiling"
    return f"{words}: the mask holds" if limited else f"{words}: every answer can be known, and is"
