"""Attention scores split into terms of content and position; cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard.models.cache import cached
from dashboard.models.model import Model, words_of

if TYPE_CHECKING:
    from transformer.analysis.heads.score_terms import Split
    from transformer.tasks import Question


@cached(32)
def split(model: Model, question: Question, site: str) -> Split:
    """The scores of one attention, term by term, reading its own words."""
    from transformer.analysis.heads.score_terms import split_question

    return split_question(model.transformer(), model.task, question, site, said=words_of(model, question))
