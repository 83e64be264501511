"""Attention: the formula as a free function, and the multi-head module around it.

"Attention Is All You Need" (Vaswani et al., 2017), sections 3.2.1 and 3.2.2.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from transformer.positions import NO_POSITIONS, PositionalEncoding
from transformer.trace import UNTRACED, Trace

FUSED = 256
"""Keys from which on nobody's untraced attention writes its pattern down: below, that costs nothing."""


def masked_softmax(
    scores: Float[Tensor, "*batch query key"], mask: Bool[Tensor, "*#batch #query #key"] | None = None
) -> Float[Tensor, "*batch query key"]:
    """Softmax over the keys that each query may see; forbidden keys get exactly 0.

    A query that may see nothing attends to nothing: its row is zeros, and gradients through it are finite.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    # The lowest finite number, not -inf: a row of -inf alone would be 0/0. Such a row comes out uniform and the last
    # step clears it; in every other row the exponential of a forbidden score is already exactly 0.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


def scaled_dot_product_attention(
    query: Float[Tensor, "*batch query d_k"],
    key: Float[Tensor, "*batch key d_k"],
    value: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    *,
    bias: Float[Tensor, "*#batch #query #key"] | None = None,
    trace: Trace = UNTRACED,
) -> tuple[Float[Tensor, "*batch query d_v"], Float[Tensor, "*batch query key"]]:
    r"""Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V, and the pattern: who looked where.

    Vaswani et al. (2017), "Attention Is All You Need", section 3.2.1, equation 1. `mask` is True where a query may see
    a key; a query that may see none gets zeros. `bias` is added to the scores (ALiBi). Returns (output, pattern).
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if bias is not None:
        scores = scores + trace("position_bias", bias)
    scores = trace("scores", scores)
    if mask is not None:
        mask = trace("mask", mask)
    pattern = trace("pattern", masked_softmax(scores, mask))
    return trace("z", pattern @ value), pattern


def fused_attention(
    query: Float[Tensor, "*batch query d_k"],
    key: Float[Tensor, "*batch key d_k"],
    value: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    *,
    bias: Float[Tensor, "*#batch query key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """The same output from PyTorch's fused kernel, which never writes the pattern down: for long inputs.

    Dao et al., "FlashAttention" (2022). It rounds in another order, so it agrees to rounding, not to the bit.
    """
    if mask is not None and bias is not None:
        mask = bias.masked_fill(~mask, -math.inf)
    return functional.scaled_dot_product_attention(query, key, value, bias if mask is None else mask)


class MultiHeadAttention(nn.Module):
    """Several heads side by side, each a projection of the same stream (Vaswani et al., 2017, section 3.2.2).

    Each head is d_model / n_heads wide. Raises ValueError where that is not a whole number.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"d_model ({d_model}) must be divisible by n_heads ({n_heads})")
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(
        self,
        looking: Float[Tensor, "batch query d_model"],
        looked_at: Float[Tensor, "batch key d_model"],
        mask: Bool[Tensor, "#batch #head #query #key"] | None = None,
        positions: PositionalEncoding = NO_POSITIONS,
        trace: Trace = UNTRACED,
    ) -> Float[Tensor, "batch query d_model"]:
        """What the queries of one stream find in another: self-attention where both are the same, else cross-attention.

        `mask` is True where a query may see a key. `positions` turn queries and keys or add to the scores, where the
        encoding does that. `trace` records and edits what is computed on the way.
        """
        query = trace("query", positions.rotate(self._split(self.query(looking))))
        key = trace("key", positions.rotate(self._split(self.key(looked_at))))
        value = trace("value", self._split(self.value(looked_at)))
        bias = positions.bias(query.shape[-2], key.shape[-2])
        if trace is UNTRACED and key.shape[-2] >= FUSED:
            z = fused_attention(query, key, value, mask, bias=bias)
        else:
            z, _ = scaled_dot_product_attention(query, key, value, mask, bias=bias, trace=trace)
        return trace("out", self.out(self._merge(z)))

    def contributions(self, z: Float[Tensor, "batch head query d_head"]) -> Float[Tensor, "batch head query d_model"]:
        """What each head writes into the residual stream. Their sum, plus the output bias, is the output."""
        weight = self.out.weight.view(-1, self.n_heads, self.d_head)
        return torch.einsum("bhqd,mhd->bhqm", z, weight)

    def _split(self, x: Float[Tensor, "batch position d_model"]) -> Float[Tensor, "batch head position d_head"]:
        return x.unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)

    def _merge(self, z: Float[Tensor, "batch head position d_head"]) -> Float[Tensor, "batch position d_model"]:
        return z.transpose(1, 2).flatten(2)
