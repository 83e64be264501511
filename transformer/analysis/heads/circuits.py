"""A head's two circuits: what it looks for (QK), and what it says of what it finds (OV), whatever is read.

"A Mathematical Framework for Transformer Circuits" (Elhage et al., 2021), "Splitting attention head terms into
circuits": both are products of weights alone, on the direct path from the embeddings, past all other layers.

What is left out: biases, which belong to no token and no position, and the division in norms, which is not linear.
Their centring and their gain are linear and are kept, for every norm on the straight way: the one before what reads
(pre-norm), or those behind every sum (post-norm). So in a model with norms the numbers compare with each other, and not
with the scores of a pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.analysis.assumptions import attention_of, require_residual, told_by
from transformer.analysis.findings import Head
from transformer.analysis.stream.sublayers import map_after, map_before
from transformer.model import Transformer
from transformer.positions import Told


@dataclass(frozen=True)
class Circuits:
    """The circuits of one head, over some tokens: all of the vocabulary but its last, the padding, unless said."""

    head: Head
    qk_tokens: Float[np.ndarray, "query_token key_token"]
    """What two tokens would add to a score. With rotary positions: when both stand at the same place."""
    qk_positions: Float[np.ndarray, "query key"] | None
    """What two positions add to a score, up to n_ctx; None where no position has a number of its own."""
    positions_from: Told
    """How this head is told of positions: by vectors added to the stream, by a bias, by turning, or not at all."""
    ov_tokens: Float[np.ndarray, "token logit"] | None
    """What looking at a token adds to each logit but that of padding, whichever rows were asked for.

    None where the unembedding does not read this stream."""
    layer: int


@torch.no_grad()
def circuits(model: Transformer, head: Head, tokens: Sequence[int] | None = None) -> Circuits:
    """QK and OV of one head, over all tokens or those named.

    Raises AttributeError for a site, IndexError for a head that is not there.

    Raises ConfigError for a model without residual connections, and for what `assumptions` names.
    """
    require_residual(model.config, "no straight way leads from its embeddings past the other layers")
    stack, layer, kind = head.site.split(".")
    attention = attention_of(model, head.site)
    across = kind == "cross_attention"
    asked = "encoder.memory" if across else head.site

    def part(projection: nn.Linear) -> Float[Tensor, "d_head d_model"]:
        """This head's rows of W_Q, W_K or W_V."""
        return projection.weight.unflatten(0, (attention.n_heads, attention.d_head))[head.index]

    def fit(vectors: Float[Tensor, "one d_model"]) -> Float[Tensor, "one one"]:
        query = map_before(model, head.site, vectors) @ part(attention.query).T
        key = map_before(model, asked, vectors) @ part(attention.key).T
        return query @ key.T / math.sqrt(attention.d_head)

    scale = math.sqrt(model.config.d_model) if model.config.scale_embeddings else 1.0
    chosen = slice(-1) if tokens is None else list(tokens)
    embedded = model.embedding.weight[chosen] * scale
    told = told_by(model.positions)
    positions, qk_positions = model.positions.vectors(model.n_ctx), None
    if positions is not None:
        qk_positions = fit(positions)
    elif across:
        told = "nowhere"
    elif (bias := model.positions.bias(model.n_ctx, model.n_ctx)) is not None:
        qk_positions = bias[head.index]

    ov = None
    if stack == "decoder" or model.config.architecture == "encoder":
        output = attention.out.weight.unflatten(1, (attention.n_heads, attention.d_head))[:, head.index]
        written = map_before(model, asked, embedded) @ part(attention.value).T @ output.T
        ov = (map_after(model, head.site, written) @ model.unembedding.weight.T)[:, :-1]
    return Circuits(
        head=head,
        qk_tokens=_array(fit(embedded)),
        qk_positions=None if qk_positions is None else _array(qk_positions),
        positions_from=told,
        ov_tokens=None if ov is None else _array(ov),
        layer=int(layer),
    )


def _array(values: Tensor) -> np.ndarray:
    """The caller's own copy."""
    return values.detach().cpu().numpy().copy()
