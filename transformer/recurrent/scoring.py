"""How well a query fits a key, and the attention made of it: a decoder's look back at an encoder's states."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from transformer.attention import masked_softmax
from transformer.trace import UNTRACED, Trace

Query = Float[Tensor, "*batch query d"]
Key = Float[Tensor, "*batch key d"]
Scores = Float[Tensor, "*batch query key"]


def uniform(query: Query, key: Key) -> Scores:
    """0 for every pair: each of L keys then gets 1/L of the attention, and the context is the mean of the values."""
    return query.new_zeros(*query.shape[:-1], key.shape[-2])


def cosine(query: Query, key: Key) -> Scores:
    """The cosine of the angle between query and key: the dot product of the two, each made of length 1."""
    return functional.normalize(query, dim=-1) @ functional.normalize(key, dim=-1).transpose(-2, -1)


def dot(query: Query, key: Key) -> Scores:
    """q · k = ‖q‖ ‖k‖ cos θ (Luong et al., 2015, section 3.1)."""
    return query @ key.transpose(-2, -1)


def scaled_dot(query: Query, key: Key) -> Scores:
    """q · k / √d (Vaswani et al., 2017, section 3.2.1)."""
    return dot(query, key) / math.sqrt(query.shape[-1])


class Alignment(nn.Module):
    """Attention of a decoder's states over an encoder's: for each target one context vector, Σ αᵢ vᵢ.

    Keys and values come from the encoder's states, the query from the decoder's, each through an affine map of its own
    if `affine`. `scoring` is uniform, dot, scaled-dot, or additive: vᵀ tanh(q + k) (Bahdanau et al., 2015, section
    3.1, whose two matrices are the maps of query and key).
    """

    def __init__(self, d_model: int, scoring: str, *, affine: bool = True) -> None:
        super().__init__()
        self.scoring = scoring
        self.query, self.key, self.value = (
            nn.Linear(d_model, d_model) if affine and (scoring != "uniform" or name == "value") else nn.Identity()
            for name in ("query", "key", "value")
        )
        if scoring == "additive":
            self.energy = nn.Linear(d_model, 1, bias=False)
        elif scoring not in _PLAIN:
            raise ValueError(f"scoring must be one of {', '.join(SCORINGS)}, not {scoring!r}")

    def forward(
        self,
        looking: Float[Tensor, "batch query d_model"],
        looked_at: Float[Tensor, "batch key d_model"],
        mask: Bool[Tensor, "#batch 1 #query key"] | None = None,
        trace: Trace = UNTRACED,
    ) -> Float[Tensor, "batch query d_model"]:
        """The context vectors. At the sites of `trace` there is one head, as in a transformer's cross-attention."""
        query = trace("query", self.query(looking)[:, None])
        key = trace("key", self.key(looked_at)[:, None])
        value = trace("value", self.value(looked_at)[:, None])
        scores = trace("scores", self.scores(query, key))
        if mask is not None:
            mask = trace("mask", mask)
        pattern = trace("pattern", masked_softmax(scores, mask))
        return trace("z", pattern @ value)[:, 0]

    def scores(self, query: Query, key: Key) -> Scores:
        """How well each query fits each key, before the softmax."""
        if self.scoring == "additive":
            return self.energy(torch.tanh(query[..., :, None, :] + key[..., None, :, :]))[..., 0]
        return _PLAIN[self.scoring](query, key)


_PLAIN = {"uniform": uniform, "dot": dot, "scaled-dot": scaled_dot}
SCORINGS = (*_PLAIN, "additive")
FORMULAS = {**_PLAIN, "cosine": cosine}
"""The scores that need no weights of their own. Nothing here is trained with the cosine: it is for comparison."""
