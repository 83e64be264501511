"""Accuracy by position as a result: the counts, the interval and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.best_guess import TIE
from transformer.analysis.intervals import CAUTION, Z999, wilson
from transformer.config import RunConfig
from transformer.foundation.words import listed
from transformer.tasks import Ceiling, Task


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

    "At chance" and "beyond" are statistical: a group is compared through the interval of its mean, CAUTION wide. More
    is right than can be, if it is more than anybody has who is told the length; less, if it is less than the best guess
    has wherever ties are broken. Of what can only be guessed, nothing is asked: of a question whose length is not told,
    not even that it is at chance. A mask that lets a query see its own
    answer is never said to hold, though nobody makes use of that yet.
    """
    task = config.build_task()
    length = task.length_of(len(accuracy.names))
    honest = ceilings.honest_ceiling(config, length)
    limited = bool((honest.accuracy < 1).any())
    shown = bool((ceilings.ceiling(config, length).greatest > honest.greatest + honest.greatest_error).any())
    parts, leaks, short, answers = [], False, False, task.answers(length)
    origin = " from the source" if task.has_source else ""
    for group, chosen in ((f"{part}{origin}", accuracy.where(part)) for part in reversed(task.parts)):
        if not chosen.any():
            continue
        low, high = wilson(int(accuracy.correct[chosen].sum()), accuracy.sequences * int(chosen.sum()), CAUTION)
        share, slack = float(accuracy.mean[chosen].mean()), CAUTION * float(honest.error[chosen].mean())
        room = CAUTION * float(honest.greatest_error[chosen].mean())
        at_chance = low <= accuracy.chance <= high
        leaks |= bool(low > float(honest.greatest[chosen].mean()) + room)
        knowable = bool((honest.accuracy[chosen] > accuracy.chance * (1 + TIE)).any())
        short |= knowable and bool(high < float(honest.least[chosen].mean()) - 0.005 - slack)
        best = _at_best(honest, chosen) if (answers & chosen).any() else "" if shown else _unguessable(honest, chosen)
        parts.append(f"{group} {share:.2f}{' = chance' if at_chance else ''}{best}")
    words = ", ".join(parts)
    against = words if any(" = chance" in part for part in parts) else f"{words}, chance {accuracy.chance:.2f}"
    if leaks:
        return f"{against}: your mask leaks"
    if short:
        return f"{against}: not yet at the ceiling"
    if shown:
        return f"{against}: the mask shows the answers, and the model does not use them"
    return f"{words}: the mask holds" if limited else f"{words}: every answer can be known, and is"


def _at_best(honest: Ceiling, chosen: Bool[np.ndarray, "target"]) -> str:
    """What the best guess has over some targets, where it is not the best of somebody who is told the length."""
    most, least = float(honest.accuracy[chosen].mean()), float(honest.least[chosen].mean())
    if np.array_equal(honest.accuracy[chosen], honest.greatest[chosen]):
        return ""
    ties = f", or {least:.2f} if every tie goes wrong" if f"{least:.2f}" != f"{most:.2f}" else ""
    return f" (the best guess without knowing the length has {most:.2f}{ties})"


def _unguessable(honest: Ceiling, chosen: Bool[np.ndarray, "target"]) -> str:
    """Of a question that is not even guessed at chance, where its length is not told: that it is random."""
    told = np.array_equal(honest.accuracy[chosen], honest.greatest[chosen])
    return "" if told else " (random symbols, which can only be guessed)"


def as_far(config: RunConfig) -> str:
    """After "solved": nothing where every answer can be known, else how far it is solved."""
    task = config.build_task()
    known = not task.lawful or (ceilings.knowable(config) == task.answers(task.length)).all()
    return "" if known else ", as far as it can be known,"


def known_and_guessed(config: RunConfig) -> str:
    """Which answers of the longest sequences can be known, and which cannot; empty where all can."""
    if not as_far(config):
        return ""
    task, most = config.build_task(), ceilings.ceiling(config).accuracy
    names, answers = task.target_names(task.length), task.answers(task.length)
    guessed = answers & (most <= task.blind(task.length) * (1 + TIE))
    known, partly = answers & (most == 1), answers & ~guessed & (most < 1)
    parts = []
    if known.any():
        parts.append(f"{spans(names, known)} can be known")
    if partly.any():
        parts.append(f"{spans(names, partly)} in part: the best guess has {most[partly].mean():.2f}")
    if guessed.any():
        parts.append(f"{spans(names, guessed)} can only be guessed")
    untold = ", because the model is not told the length" if len(task.lengths) > 1 else ""
    return "; ".join(parts) + untold


def spans(names: Sequence[str], which: Bool[np.ndarray, "target"]) -> str:
    """Targets in words, neighbours drawn together: "x2 to x8 and SEP"."""
    parts: list[str] = []
    chosen = np.flatnonzero(which).tolist()
    for run in np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1):
        first, last = names[int(run[0])], names[int(run[-1])]
        parts += [first] if len(run) == 1 else [first, last] if len(run) == 2 else [f"{first} to {last}"]
    return listed(parts)
