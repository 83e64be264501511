"""The logit lens, and what each part of the model adds to a logit; cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.cache import cached
from dashboard.models.model import Model, words_of

if TYPE_CHECKING:
    from transformer.analysis.stream.lens import Lens
    from transformer.tasks import Question


def lens(model: Model, question: Question) -> Lens:
    """One question through the logit lens, reading its own words."""
    return _lens(model, question.tobytes())


def writes(model: Model, question: Question) -> dict[str, np.ndarray]:
    """What each part of it adds to the right token's logit, above the mean token's: float [position] a part."""
    return _writes(model, question.tobytes())


@cached(64, "Looking into the model …")
def _lens(model: Model, question: bytes) -> Lens:
    from transformer.analysis.stream.lens import lens

    symbols = np.frombuffer(question, dtype=np.int64)
    return lens(model.transformer(), model.task, symbols, said=words_of(model, symbols))


@cached(64)
def _writes(model: Model, question: bytes) -> dict[str, np.ndarray]:
    from transformer.analysis.stream.attribution import writes

    symbols = np.frombuffer(question, dtype=np.int64)
    return writes(model.transformer(), model.task, symbols, said=words_of(model, symbols))
