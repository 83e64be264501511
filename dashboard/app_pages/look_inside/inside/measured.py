"""Every number of one query of one head, and the circuits of a head; cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.cache import cached
from dashboard.models.model import Model, words_of
from transformer.analysis.findings import Head

if TYPE_CHECKING:
    from transformer.analysis.heads.circuits import Circuits
    from transformer.analysis.heads.inside import Inside
    from transformer.tasks import Question


def inside(model: Model, question: Question, head: Head, query: int) -> Inside:
    """Every number of one query of one head, while it reads its own words; the query's place counted from 0."""
    return _inside(model, question.tobytes(), head, query)


@cached(64)
def circuits(model: Model, head: Head, tokens: tuple[int, ...]) -> Circuits:
    """What a head does to the embeddings of these tokens and to positions, whatever is read."""
    from transformer.analysis.heads.circuits import circuits

    return circuits(model.transformer(), head, tokens)


@cached(64)
def _inside(model: Model, question: bytes, head: Head, query: int) -> Inside:
    from transformer.analysis.heads.inside import look_inside

    symbols = np.frombuffer(question, dtype=np.int64)
    return look_inside(model.transformer(), model.task, symbols, head, query, said=words_of(model, symbols))
