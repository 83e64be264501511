"""Attention scores split into terms of content and position; cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.cache import cached
from dashboard.models.model import Model, words_of

if TYPE_CHECKING:
    from transformer.analysis.heads.score_terms import Shares, Split
    from transformer.tasks import Question


def split(model: Model, question: Question, site: str) -> Split:
    """The scores of one attention, term by term, reading its own words."""
    return _split(model, question.tobytes(), site)


@cached(32)
def _split(model: Model, question: bytes, site: str) -> Split:
    from transformer.analysis.heads.score_terms import split_question

    symbols = np.frombuffer(question, dtype=np.int64)
    return split_question(model.transformer(), model.task, symbols, site, said=words_of(model, symbols))


@cached(32, "Taking scores apart …")
def shares(model: Model) -> Shares:
    """What tells keys apart in every head whose scores can be split, over many sequences."""
    from transformer.analysis.heads.score_terms import measure_shares

    return measure_shares(model.transformer(), model.task)
