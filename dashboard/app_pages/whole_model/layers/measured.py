"""The logit lens, and what each part of the model adds to a logit; cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.cache import cached
from dashboard.models.model import Model, words_of

if TYPE_CHECKING:
    from transformer.analysis.stream.lens import Lens
    from transformer.tasks import Question


@cached(64, "Looking into the model …")
def lens(model: Model, question: Question) -> Lens:
    """One question through the logit lens, reading its own words."""
    from transformer.analysis.stream.lens import lens

    return lens(model.transformer(), model.task, question, said=words_of(model, question))


@cached(64)
def writes(model: Model, question: Question) -> dict[str, np.ndarray]:
    """What each part of it adds to the right token's logit, above the mean token's: float [position] a part."""
    from transformer.analysis.stream.attribution import writes

    return writes(model.transformer(), model.task, question, said=words_of(model, question))
