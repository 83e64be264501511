"""What each token does to each output, measured by replacing tokens and by gradients; cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.cache import cached
from dashboard.models.model import Model, words_of

if TYPE_CHECKING:
    from transformer.analysis.interventions.influence import Pokes
    from transformer.tasks import Batch, Question


@cached(64, "Poking token after token …")
def pokes(model: Model, question: Question, candidates: tuple[int, ...], slots: tuple[int, ...] | None) -> Pokes:
    """Each token, or those at some slots, replaced in turn by each candidate, the others as they are when it reads its
    own words."""
    from transformer.analysis.interventions.influence import poke

    return poke(model.network(), _read(model, question), candidates, slots=slots)


@cached(32, "Taking gradients …")
def gradients(model: Model, question: Question, outputs: tuple[int, ...] | None) -> np.ndarray:
    """How steeply the logit of each output, or of some, leans on each token, reading its own words: [output, slot]."""
    from transformer.analysis.interventions.influence import gradients

    return gradients(model.network(), _read(model, question), outputs=outputs)


def _read(model: Model, question: Question) -> Batch:
    """What a model reads when it reads its own words."""
    from transformer.analysis.sample import lay_out

    return lay_out(model.task, question, said=words_of(model, question))
