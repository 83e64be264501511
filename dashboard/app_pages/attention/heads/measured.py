"""The metrics of every head, and what removing it costs: measured in the background, cached."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from dashboard.models.background import MEASUREMENTS
from dashboard.models.cache import cached
from dashboard.models.model import Model
from transformer.analysis.heads.metrics import Estimate, HeadMetrics

if TYPE_CHECKING:
    from transformer.analysis.heads.kinds import Kinds


@cached(16)
def head_metrics(model: Model) -> Future[HeadMetrics]:
    """What every head is like over many sequences, without removing any; measured behind the page's back."""
    from transformer.analysis.heads.measure import measure_heads

    return MEASUREMENTS.submit(measure_heads, model.network(), model.task)


def has_kinds(model: Model) -> bool:
    """Do the heads of this model read a text, whose tokens are of kinds?"""
    return not model.task.lawful and not model.config.model.recurrent


@cached(16)
def kinds(model: Model) -> Future[Kinds]:
    """On which kinds of token the heads of a model of a text look; measured behind the page's back."""
    from transformer.analysis.heads.measure import measure_kinds

    return MEASUREMENTS.submit(measure_kinds, model.network(), model.task)


@cached(16)
def removal(model: Model) -> Future[Estimate]:
    """What removing each head costs; measured behind the page's back."""
    from transformer.analysis.heads.measure import measure_removal

    return MEASUREMENTS.submit(measure_removal, model.network(), model.task)
