"""Sentences about what a change of an imported model's attention does to its own output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.imported import Look
from dashboard.parts.prose import labels_of
from transformer.analysis.findings import Head
from transformer.foundation.words import listed
from transformer.masks import Mask

if TYPE_CHECKING:
    from transformer.capturing.outputs import Answer

MEASURE = {
    "logits": ("nats", "how far the distribution of words moves (Kullback-Leibler divergence)"),
    "embedding": ("of its length", "how far the vector moves, as a share of its length"),
}
"""Of each kind of output: the unit of a change, and what it is."""
NAMED = 3
"""Heads that a title names; of more it says how many."""


def headline(before: Look, after: Look, removed: Sequence[Head], mask: Mask | None, problem: str) -> str:
    """What the change does to the output, on average over the positions."""
    what = changes(before, removed, mask)
    if not what:
        return "Nothing is changed yet. Remove a head, and see which of its own words change."
    if problem:
        return f"{what} the model cannot be asked."
    moved = shift(before, after)
    if moved is None:
        return f"{what} the model was asked again. Its output is neither logits nor vectors, so it is not compared."
    assert before.answer is not None
    unit = MEASURE[before.answer.kind][0]
    at = int(np.nanargmax(moved))
    where = f", most at position {at + 1}" if len(moved) > 1 else ""
    return f"{what} the model’s own output changes by {amount(np.nanmean(moved))} {unit} on average{where}."


def changes(seen: Look, removed: Sequence[Head], mask: Mask | None) -> str:
    """What is changed: "Without head 1.3", "Under the causal mask"; empty where nothing is."""
    parts = []
    if removed:
        labels = dict(zip(seen.heads, labels_of(seen.heads), strict=True))
        names = [labels[head] for head in removed]
        one = f"head{'s' if len(names) > 1 else ''} {listed(names)}"
        parts.append(f"without {one if len(names) <= NAMED else f'{len(names)} heads'}")
    if mask is not None:
        parts.append(mask.under(called=mask.label))
    said = " and ".join(parts)
    return f"{said[0].upper()}{said[1:]}" if said else ""


def amount(value: float) -> str:
    """A change with three digits behind the point, or with two digits where these would say little."""
    return f"{value:.3f}" if value >= 0.01 or value == 0 else np.format_float_positional(value, 2, fractional=False)


def shift(before: Look, after: Look) -> np.ndarray | None:
    """How much the output changes at each position; None where outputs cannot be compared."""
    from transformer.capturing.outputs import difference

    if before.answer is None or after.answer is None:
        return None
    return difference(before.answer, after.answer)


def measured_in(answer: Answer) -> str:
    """What is said under a picture of changes."""
    unit, meaning = MEASURE[answer.kind]
    return f"In {unit}: {meaning}."
