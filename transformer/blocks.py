"""The blocks a transformer is stacked from: attention and a feed-forward layer, each added to the residual stream.

Or not added: a model whose config says `residual=False` sends on what each sub-layer makes, and that alone.
"""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention
from transformer.config import ModelConfig
from transformer.normalisation import norm_at
from transformer.positions import NO_POSITIONS, PositionalEncoding
from transformer.trace import UNTRACED, Trace


class FeedForward(nn.Module):
    """The same two-layer network at every position: W₂ max(0, W₁ x + b₁) + b₂.

    Vaswani et al. (2017), section 3.3, equation 2. It is d_ff wide inside.
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(
        self, x: Float[Tensor, "batch position d_model"], trace: Trace = UNTRACED
    ) -> Float[Tensor, "batch position d_model"]:
        return trace("out", self.down(trace("hidden", self.up(x).relu())))


class Norms(nn.Module):
    """Where the norm stands around a sub-layer: before it (pre-norm), after its residual sum (post-norm), nowhere."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.before, self.after = norm_at(config, "pre"), norm_at(config, "post")


class Block(nn.Module):
    """One layer: self-attention, cross-attention where `cross` is True, and feed-forward.

    Each reads the residual stream, and its output is added to it (Vaswani et al., 2017, section 3.1). A norm stands
    before each or after its sum, as `config.norm` says.
    """

    def __init__(self, config: ModelConfig, *, cross: bool = False) -> None:
        super().__init__()
        self.self_attention, self.around_self = MultiHeadAttention(config.d_model, config.n_heads), Norms(config)
        if cross:
            self.cross_attention, self.around_cross = MultiHeadAttention(config.d_model, config.n_heads), Norms(config)
        if config.d_ff:
            self.feed_forward, self.around_feed_forward = FeedForward(config.d_model, config.d_ff), Norms(config)
        self.cross, self.feeds, self.residual = cross, config.d_ff > 0, config.residual
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        resid: Float[Tensor, "batch position d_model"],
        mask: Bool[Tensor, "#batch #head #position #key"] | None = None,
        memory: Float[Tensor, "batch source d_model"] | None = None,
        memory_mask: Bool[Tensor, "#batch #head #position #source"] | None = None,
        positions: PositionalEncoding = NO_POSITIONS,
        trace: Trace = UNTRACED,
    ) -> Float[Tensor, "batch position d_model"]:
        """The residual stream after this layer. `memory` is what cross-attention looks at: the encoder's output."""
        resid = trace("resid_pre", resid)

        norm = self.around_self
        x = norm.before(resid)
        attended = self.self_attention(x, x, mask, positions, trace.within("self_attention"))
        resid = trace("resid_mid", norm.after(self.kept(resid) + self.dropout(attended)))

        if self.cross:
            norm = self.around_cross
            attended = self.cross_attention(
                norm.before(resid), memory, memory_mask, trace=trace.within("cross_attention")
            )
            resid = trace("resid_cross", norm.after(self.kept(resid) + self.dropout(attended)))

        if self.feeds:
            norm = self.around_feed_forward
            fed = self.feed_forward(norm.before(resid), trace.within("feed_forward"))
            resid = norm.after(self.kept(resid) + self.dropout(fed))
        return trace("resid_post", resid)

    def kept(self, resid: Float[Tensor, "batch position d_model"]) -> Float[Tensor, "batch position d_model"] | float:
        """What the residual connection adds to a sub-layer's output: that sub-layer's input, or 0 without one."""
        return resid if self.residual else 0.0
