"""Sentences about the layers of a model that is not ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.imported import Look
from transformer.analysis.findings import Attention
from transformer.analysis.heads.rollout import depth
from transformer.foundation.claims import claim
from transformer.foundation.words import counted

if TYPE_CHECKING:
    from transformer.capturing.lens import Lens

LENS = (
    "The logit lens reads the residual stream as if the model stopped there: the model’s own last norm and its "
    "unembedding are applied after each layer. The embedding is at the bottom, the output at the top. A word is what "
    "the model would say there, and colour is that word’s probability. The last stage is exactly what the model says."
)
NO_LENS = (
    "There is no logit lens of this model: its last steps are not a norm and an unembedding into words, or they could "
    "not be found. The lens needs both."
)


@claim
def headline(seen: Look, lens: Lens | None) -> str:
    """After which layer the model would say half of its last words; without a lens, through how many layers one looks.

    Some stage says half of them, for the last one says all.
    """
    if lens is None:
        layers = depth(seen.attentions)
        own = f"{layers} layers" if layers > 1 else "one layer"
        return f"From which tokens each position comes, through its {own}."
    counts, total = agreeing(lens), len(lens.words[-1])
    half = next(i for i, count in enumerate(counts) if 2 * count >= total)
    if half == len(counts) - 1:
        words = f"Half of its {total} words come" if total > 1 else "Its word comes"
        return f"{words} only in its last layer."
    words = f"all of its {total} words" if counts[half] == total else f"{counts[half]} of its {total} words"
    return f"After {place(lens.layers[half])} it would already say {'its word' if total == 1 else words}."


def place(stage: str) -> str:
    """A stage, in a sentence."""
    return "the embedding" if stage == "embedding" else stage


def agreeing(lens: Lens) -> list[int]:
    """At how many positions each stage would say what the model says in the end."""
    return [int(count) for count in (lens.tokens == lens.tokens[-1]).sum(axis=1)]


@claim
def lens(found: Lens) -> str:
    """The lens, as its text alternative."""
    counts = ", ".join(f"{count} {after}" for count, after in zip(agreeing(found), found.layers, strict=True))
    return f"Logit lens. So many of {counted(len(found.words[-1]), 'word')} are those of the last stage: {counts}."


@claim
def rolled(found: tuple[Attention, Attention], through: int) -> str:
    """How much of a position comes from itself and from the token before, in the rollout and in the layer alone."""
    values, mean = (each.pattern[0] for each in found)
    if values.shape[0] < 2 or values.shape[0] != values.shape[1]:
        return f"The rollout through layer {through}, beside layer {through} alone."
    parts = [[f"{share:.2f}" for share in _near(each)] for each in (values, mean)]
    return (
        f"In the rollout through layer {through}, {parts[0][0]} of a position comes from its own token and "
        f"{parts[0][1]} from the one before. Layer {through} alone puts {parts[1][0]} and {parts[1][1]} of its "
        "attention there (mean of its heads)."
    )


def _near(values: np.ndarray) -> list[float]:
    return [float(np.diagonal(values)[1:].mean()), float(np.diagonal(values, -1).mean())]
