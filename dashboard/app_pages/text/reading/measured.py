"""How a model reads: gain from context, repetition and distances; cached.

PyTorch is imported when the first of it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dashboard.models.cache import cached
from dashboard.models.model import Model

if TYPE_CHECKING:
    from transformer.analysis.accuracy.surprise import Growth
    from transformer.analysis.heads.distances import Distances
    from transformer.analysis.heads.induction import Repetition
    from transformer.text.task import Text

DRAWN = 64
"""Passages that are counted."""


@cached(16)
def evaluation(model: Model) -> dict[str, Any] | None:
    """What was measured when its run had ended, if it is of these weights."""
    if model.run is None:
        return None
    found = model.run.evaluation or {}
    return found if found.get("snapshot") == model.run.digest(model.step) and "perplexity" in found else None


@cached(16)
def wordless(model: Model) -> float:
    """The share of what is held out that has no letter and no digit, in passages drawn from it."""
    task = text_of(model)
    no_word = np.array([not any(letter.isalnum() for letter in token) for token in task.vocabulary])
    passages = task.draw(np.random.default_rng(0), DRAWN, task.n_ctx)
    return float(no_word[np.concatenate([*passages])].mean())


@cached(16, "Reading held-out text …")
def growth(model: Model) -> Growth:
    """The loss by place in a window of the text."""
    from transformer.analysis.accuracy.surprise import growth

    return growth(model.network(), text_of(model))


@cached(16, "Reading each block twice …")
def repetition(model: Model, passages: bool) -> Repetition:
    """What heads do on repeated text. Raises ConfigError where a model says no next token, or reads too few."""
    from transformer.analysis.heads.induction import find_induction

    return find_induction(model.network(), model.task, passages=passages)


@cached(16, "Measuring how far heads look …")
def distances(model: Model) -> Distances:
    """How far each head looks."""
    from transformer.analysis.heads.distances import measure_distances

    return measure_distances(model.network(), model.task)


def text_of(model: Model) -> Text:
    """The task of a model that reads a text."""
    assert not model.task.lawful
    return cast("Text", model.task)
