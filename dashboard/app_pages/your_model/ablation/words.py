"""Sentences about what a change of an imported model's attention does to its own output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dashboard.models.imported import Look
from dashboard.parts.prose import labels_of
from transformer.analysis.findings import Head
from transformer.foundation.claims import claim
from transformer.foundation.words import counted, listed
from transformer.masks import Mask

MEASURE = {
    "logits": ("nats", "how far the distribution of words moves (Kullback-Leibler divergence)"),
    "embedding": ("of its length", "how far the vector moves, as a share of its length"),
}
"""Of each kind of output: the unit of a change, and what it is."""
NAMED = 3
"""Heads that a title names; of more it says how many."""


NOTHING = "Remove a head of this model or change its mask, and see what changes."


@claim
def headline(before: Look, after: Look, what: str) -> str:
    """How many of the model's words are others after the change that `what` names; by how much its vectors
    change; or that the output cannot be compared."""
    moved = shift(before, after)
    if moved is None or before.answer is None or after.answer is None:
        return f"{what} the model was asked again. Its output is neither logits nor vectors, so it is not compared."
    if before.answer.kind == "embedding":
        vectors = "vectors change by {} of their" if len(moved) > 1 else "vector changes by {} of its"
        return f"{what}, its {vectors.format(amount(np.nanmean(moved)))} length."
    others = count_changed_words(before, after)
    word = "word" if len(moved) == len(before.given.names) else "answer"
    if len(moved) == 1:
        return f"{what}, its {word} {'changes' if others else 'stays the same'}."
    return f"{what}, {others} of its {len(moved)} {word}s change."


@claim
def amount_sentence(before: Look, after: Look) -> str:
    """By how much the output changes, and where most; empty where it cannot be compared."""
    moved = shift(before, after)
    if moved is None or before.answer is None:
        return ""
    unit, meaning = MEASURE[before.answer.kind]
    shown = [amount(each) for each in moved]
    most = [place for place, each in enumerate(shown) if each == amount(np.nanmax(moved))]
    average, where = "", ""
    if len(moved) > 1:
        average = f" on average over {len(moved)} positions"
        if len(most) <= NAMED:
            where = f", most at position{'s' * (len(most) > 1)} {listed([str(place + 1) for place in most])}"
    return f"The output changes by {amount(np.nanmean(moved))} {unit}{average}{where}: {meaning}."


@claim
def removal_sentence(labels: Sequence[str], costs: np.ndarray, unit: str) -> str:
    """Which head changes the output most when it alone is removed; all are named that come out alike."""
    most = amount(np.nanmax(costs))
    alike = [label for label, cost in zip(labels, costs, strict=True) if amount(cost) == most]
    by = f"by {most} {unit} on average over the positions of this input."
    if not np.nanmax(costs):
        return "Removing any one head leaves the model’s own output on this input as it is."
    if len(labels) == 1:
        return f"Removing the one head changes the model’s own output {by}"
    if len(alike) > NAMED:
        return (
            f"Removing any of {len(alike)} of the {len(labels)} heads alone changes the model’s own output most, {by}"
        )
    return f"Removing head {listed(alike, 'or')} alone changes the model’s own output most, {by}"


@claim
def flips_sentence(before: Look, after: Look) -> str:
    """How many likeliest words are others after the change."""
    assert before.answer is not None
    return f"{count_changed_words(before, after)} of {counted(len(before.answer.values), 'likeliest word')} change."


def count_changed_words(before: Look, after: Look) -> int:
    """At how many positions the likeliest word is another."""
    assert before.answer is not None
    assert after.answer is not None
    return int((before.answer.values.argmax(axis=1) != after.answer.values.argmax(axis=1)).sum())


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
