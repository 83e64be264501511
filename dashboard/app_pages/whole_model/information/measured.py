"""What each token does to each output, by replacing tokens and by gradients: measured behind the page, cached."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.background import MEASUREMENTS
from dashboard.models.cache import cached
from dashboard.models.model import Model, words_of

if TYPE_CHECKING:
    from transformer.analysis.interventions.influence import Pokes
    from transformer.network import Network
    from transformer.tasks import Batch, Question


class Poking:
    """Tokens that are being replaced in turn, and what share of it is done."""

    def __init__(
        self, network: Network, batch: Batch, candidates: tuple[int, ...], slots: tuple[int, ...] | None
    ) -> None:
        self.share = 0.0
        self.future: Future[Pokes] = MEASUREMENTS.submit(self._poke, network, batch, candidates, slots)

    def _poke(
        self, network: Network, batch: Batch, candidates: tuple[int, ...], slots: tuple[int, ...] | None
    ) -> Pokes:
        from transformer.analysis.interventions.influence import poke

        return poke(network, batch, candidates, slots=slots, told=self._told)

    def _told(self, share: float) -> None:
        self.share = share


@cached(64)
def poking(model: Model, question: Question, candidates: tuple[int, ...], slots: tuple[int, ...] | None) -> Poking:
    """Each token, or those at some slots, replaced in turn by each candidate, the others as they are when it reads its
    own words."""
    return Poking(model.network(), _read(model, question), candidates, slots)


@cached(32)
def gradients(model: Model, question: Question, outputs: tuple[int, ...] | None) -> Future[np.ndarray]:
    """How steeply the logit of each output, or of some, leans on each token, reading its own words: [output, slot]."""
    from transformer.analysis.interventions.influence import gradients

    return MEASUREMENTS.submit(gradients, model.network(), _read(model, question), outputs=outputs)


def _read(model: Model, question: Question) -> Batch:
    """What a model reads when it reads its own words."""
    from transformer.analysis.sample import lay_out

    return lay_out(model.task, question, said=words_of(model, question))
