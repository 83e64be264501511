"""What several pages ask about a model's heads: one head in full, rollout, what tells keys apart; cached.

PyTorch is imported when the first of it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.cache import cached
from dashboard.models.model import Model, words_of
from transformer.analysis.findings import Detail
from transformer.analysis.heads.rollout import evenly, rollout

if TYPE_CHECKING:
    from transformer.analysis.heads.score_terms import Shares
    from transformer.tasks import Question


@cached(4, "Looking closer …")
def detail(model: Model, question: Question, site: str) -> Detail:
    """One attention module on one question, cell by cell, reading its own words."""
    from transformer.analysis.heads.detail import detail

    return detail(model.network(), model.task, question, site, said=words_of(model, question))


@cached(32)
def rolled(model: Model, question: Question, through: int) -> tuple[np.ndarray, np.ndarray]:
    """Attention rolled out through a layer, and the same if every head looked evenly: float [query, slot]."""
    from transformer.analysis.assumptions import require_residual

    require_residual(model.config.model, "rollout counts half of each stream as what was there, and here nothing stays")
    attentions = model.sample(question).attentions
    return rollout(attentions, through), rollout(evenly(attentions), through)


def removal_takes_long(model: Model) -> bool:
    from transformer.analysis.heads.measure import removal_takes_long

    return removal_takes_long(model.network(), model.task)


@cached(32, "Taking scores apart …")
def shares(model: Model) -> Shares:
    """What tells keys apart in every head whose scores can be split, over many sequences."""
    from transformer.analysis.heads.score_terms import measure_shares

    return measure_shares(model.transformer(), model.task)
