"""Accuracy by position: how often each target is right over many fresh sequences, how sure that is, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from transformer.analysis import ceilings
from transformer.analysis.intervals import Z999, wilson
from transformer.config import RunConfig
from transformer.edits import Edit
from transformer.model import Transformer
from transformer.observation import observe
from transformer.tasks import Batch, Task

EVALUATION_STREAM = 1
"""Sequences for measuring come from another stream of a seed than those for training (0)."""
CHUNK = 1024
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


def predictions(model: Transformer, batch: Batch, edits: Sequence[Edit] = ()) -> Int[np.ndarray, "batch position"]:
    """The likeliest token at each position, given the true tokens before it (teacher forcing)."""
    device = next(model.parameters()).device
    said = []
    for start in range(0, len(batch.tokens), CHUNK):
        part = slice(start, start + CHUNK)
        tokens = torch.from_numpy(batch.tokens[part]).to(device)
        source = None if batch.source is None else torch.from_numpy(batch.source[part]).to(device)
        if edits:
            logits = observe(model, tokens, edits, source=source).logits
        else:
            with torch.no_grad():
                logits = model(tokens, source)
        said.append(logits.argmax(dim=-1).cpu().numpy())
    return np.concatenate(said)


def accuracy_by_position(
    model: Transformer,
    task: Task,
    *,
    sequences: int = 4096,
    length: int | None = None,
    seed: int = 0,
    edits: Sequence[Edit] = (),
) -> Accuracy:
    """Measure on fresh sequences of one length (the longest unless said). The model must be in evaluation mode."""
    length = task.length if length is None else length
    batch = task.batch(np.random.default_rng([seed, EVALUATION_STREAM]), sequences, length)
    right = predictions(model, batch, edits) == batch.targets
    return Accuracy(
        correct=right.sum(axis=0),
        sequences=sequences,
        names=task.target_names(length),
        groups=task.groups(length),
        chance=task.chance,
        exact=int((right | ~batch.is_answer).all(axis=1).sum()),
    )


def recorded(evaluation: Mapping[str, Any], task: Task) -> Accuracy:
    """The accuracy that a run's `evaluation.json` holds, at the task's greatest length."""
    return Accuracy(
        correct=np.array(evaluation["correct"]),
        sequences=evaluation["sequences"],
        names=task.target_names(task.length),
        groups=task.groups(task.length),
        chance=task.chance,
        exact=round(evaluation["exact_match"] * evaluation["sequences"]),
    )


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
