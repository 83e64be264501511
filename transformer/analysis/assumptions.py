"""What the analyses assume of a model, in one place: each asks here, and what does not hold is one sentence.

A formula holds for the variants that it was written for. Where a model has another, an analysis raises `NotCovered`,
and a page says the sentence in place of numbers. There are two kinds of question: what a model is made of (`norm_of`,
`attention_of`, `told_by`, `require_residual`), and, where the parts of a pass are at hand, whether they add up to it
(`require_sum`). The second needs to know nothing of the variants that there may be one day.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention
from transformer.config import ConfigError, ModelConfig
from transformer.model import Transformer
from transformer.normalisation import Normalisation
from transformer.positions import PositionalEncoding, Told

TOLERANCE = 1e-3
"""How far a sum may be from the whole, as a share of the largest number in it: rounding is far below."""


class NotCovered(ConfigError):
    """A model of a kind for which an analysis has no formula; the message is one sentence."""


def norm_of(module: nn.Module) -> Normalisation:
    """The norm that stands here, which says its linear part; `NoNorm` where there is none. Raises NotCovered."""
    if not isinstance(module, Normalisation):
        raise NotCovered(f"this model has a norm whose linear part is not known here: {type(module).__name__}")
    return module


def attention_of(model: Transformer, site: str) -> MultiHeadAttention:
    """The attention at a site, whose scores are q · k / √d_head. Raises NotCovered, AttributeError for no site."""
    attention = model.get_submodule(site)
    if not isinstance(attention, MultiHeadAttention) or type(attention).forward is not MultiHeadAttention.forward:
        raise NotCovered("the attention of this model is not computed by the formula that this is about")
    return attention


def told_by(positions: PositionalEncoding) -> Told:
    """How a model is told of positions: vectors in the stream, a bias on scores, turned queries and keys, not at all.

    Raises NotCovered for an encoding that does more than one of them.
    """
    found: list[Told] = []
    if positions.vectors(1) is not None:
        found.append("vectors")
    if positions.bias(1, 1) is not None:
        found.append("bias")
    if type(positions).rotate is not PositionalEncoding.rotate:
        found.append("rotation")
    if len(found) > 1:
        raise NotCovered(f"this model is told of positions by {' and '.join(found)}: no formula here has both")
    return found[0] if found else "nowhere"


def require_residual(config: ModelConfig, else_: str) -> None:
    """Raises NotCovered, with `else_` at the end of its sentence, where a model has no residual connections."""
    if not config.residual:
        raise NotCovered(f"this model has no residual connections: {else_}")


def require_sum(parts: Tensor, whole: Tensor, what: str) -> None:
    """Raises NotCovered where the parts, along the first axis, do not add up to the whole: "its scores"."""
    scale = torch.maximum(parts.abs().amax(), whole.abs().amax())
    if not bool((parts.sum(dim=0) - whole).abs().amax() <= TOLERANCE * scale):
        raise NotCovered(f"the parts that are told apart here do not add up to {what}: this model computes otherwise")
