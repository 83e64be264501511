"""Reading a text: what each token of it costs a model, and whether it was the likeliest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from torch import from_numpy

from transformer.analysis.accuracy.by_position import logits
from transformer.analysis.heads.measure import heads_of
from transformer.edits import Edit
from transformer.edits.heads.zero import AblateHead
from transformer.network import Network
from transformer.tasks import Batch
from transformer.text.perplexity import perplexity

READ = 2**13
"""Tokens of what is held out that are read where a law would be asked for fresh sequences while it is learned."""


@dataclass(frozen=True)
class Reading:
    """What it cost to read windows of a text, target by target."""

    nats: Float[np.ndarray, "window target"]
    """Cross-entropy: minus the logarithm of the probability that the token was given."""
    right: Bool[np.ndarray, "window target"]

    @property
    def perplexity(self) -> float:
        """The exponential of the mean cross-entropy: of how many tokens, equally likely, one would be as unsure."""
        return perplexity(float(self.nats.mean()))


def reading(model: Network, batch: Batch, edits: Sequence[Edit] = ()) -> Reading:
    """Read a batch whose every target counts. The model must be in evaluation mode."""
    nats, right, done = [], [], 0
    for said in logits(model, batch, edits):
        targets = from_numpy(batch.targets[done : done + len(said)]).to(said.device)
        done += len(said)
        given = said.float().log_softmax(dim=-1).gather(-1, targets[..., None])[..., 0]
        nats.append(-given.cpu().numpy())
        right.append((said.argmax(dim=-1) == targets).cpu().numpy())
    return Reading(np.concatenate(nats), np.concatenate(right))


def cost_of_each_head(model: Network, batch: Batch, edits: Sequence[Edit] = ()) -> Float[np.ndarray, "head"]:
    """What silencing one head adds to the mean cross-entropy, in nats a token, each in turn (Michel et al., 2019, 3.2).

    Its z is zero; the heads are in the order of `heads_of`. Under `edits`, where there are any: the rest is as they
    leave it. Below 0 the model reads better without.
    """
    before = reading(model, batch, edits).nats.mean()
    removals = [(*edits, AblateHead(f"{head.site}.z", head.index)) for head in heads_of(model)]
    return np.array([reading(model, batch, removal).nats.mean() - before for removal in removals], dtype=np.float64)
