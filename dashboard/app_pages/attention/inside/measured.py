"""Every number of one query of one head, and the circuits of a head; cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard.models.cache import cached
from dashboard.models.model import Model, words_of
from transformer.analysis.findings import Head

if TYPE_CHECKING:
    from transformer.analysis.heads.circuits import Circuits
    from transformer.analysis.heads.inside import Inside
    from transformer.tasks import Question


@cached(64)
def inside(model: Model, question: Question, head: Head, query: int) -> Inside:
    """Every number of one query of one head, while it reads its own words; the query's place counted from 0."""
    from transformer.analysis.heads.inside import look_inside

    return look_inside(model.transformer(), model.task, question, head, query, said=words_of(model, question))


@cached(64)
def circuits(model: Model, head: Head, tokens: tuple[int, ...]) -> Circuits:
    """What a head does to the embeddings of these tokens and to positions, whatever is read."""
    from transformer.analysis.heads.circuits import circuits

    return circuits(model.transformer(), head, tokens)
