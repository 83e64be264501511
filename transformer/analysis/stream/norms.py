"""LayerNorm on one token's vector, step by step: its mean, its spread, scaled, shifted.

Ba et al., "Layer Normalization" (2016): LN(x) = gain · (x - mean) / √(variance + ε) + shift, each token by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.analysis.sample import lay_out, observe_batch
from transformer.analysis.stream.sublayers import Sublayer, sublayer_of
from transformer.config import ConfigError
from transformer.model import Transformer
from transformer.observation import Observation
from transformer.tasks import Question, Task
from transformer.trace import only

NONE = "this model has no LayerNorm"


@dataclass(frozen=True, eq=False)
class Normed:
    """One token's vector before and after the LayerNorm of a sub-layer."""

    before: Float[np.ndarray, "d_model"]
    """Pre-norm: the residual stream. Post-norm: the stream and the sub-layer's output, added."""
    mean: float
    spread: float
    """Standard deviation of the numbers in `before`, without ε."""
    epsilon: float
    standard: Float[np.ndarray, "d_model"]
    """(before - mean) / √(spread² + ε)."""
    gain: Float[np.ndarray, "d_model"]
    shift: Float[np.ndarray, "d_model"]
    after: Float[np.ndarray, "d_model"]
    """gain · standard + shift: post-norm as the pass recorded it, pre-norm by the model's own module."""


@torch.no_grad()
def most_changed(
    model: Transformer,
    task: Task,
    question: Question,
    paths: Sequence[str],
    *,
    said: Int[np.ndarray, "answer"] | None = None,
) -> tuple[str, int]:
    """The sub-layer, of these `paths`, and the token whose vector is farthest from mean 0 and spread 1 before the norm.

    Farthest by |mean| + |spread - 1|; the token's place is counted from 0. Of equals the first.
    """
    sublayers = {path: sublayer_of(model, path) for path in paths}
    sites = [site for each in sublayers.values() for site in (each.reads, each.out)]
    seen = observe_batch(model, lay_out(task, question, said=said), (), only(*sites))
    far = {}
    for path, each in sublayers.items():
        x = _met(model, each, seen).cpu().double()
        far[path] = (x.mean(dim=-1).abs() + (x.std(dim=-1, correction=0) - 1).abs()).numpy()
    path = max(far, key=lambda each: float(far[each].max()))
    return path, int(far[path].argmax())


def _met(model: Transformer, sublayer: Sublayer, seen: Observation) -> Float[Tensor, "position d_model"]:
    """The vectors that a norm meets: the stream before a sub-layer, or after it the sum with what that computed."""
    stream = seen[sublayer.reads][0]
    if model.config.norm == "pre":
        return stream
    return (stream if model.config.residual else 0.0) + seen[sublayer.out][0]


@torch.no_grad()
def normalise(
    model: Transformer,
    task: Task,
    question: Question,
    path: str,
    place: int,
    *,
    said: Int[np.ndarray, "answer"] | None = None,
) -> Normed:
    """The LayerNorm of the sub-layer `path` ("decoder.0.self_attention") at one token, its place counted from 0.

    `said` is read in place of the right answer. Raises ConfigError for a model without norms.
    """
    sublayer = sublayer_of(model, path)
    pre = model.config.norm == "pre"
    norm = sublayer.around.before if pre else sublayer.around.after
    if not isinstance(norm, nn.LayerNorm):
        raise ConfigError(NONE)
    seen = observe_batch(
        model, lay_out(task, question, said=said), (), only(sublayer.reads, sublayer.out, sublayer.after)
    )
    before = _met(model, sublayer, seen)[place]
    after = norm(before) if pre else seen[sublayer.after][0, place]
    x = before.cpu().numpy().astype(np.float64)
    mean, spread = float(x.mean()), float(x.std())
    return Normed(
        before=before.cpu().numpy().copy(),
        mean=mean,
        spread=spread,
        epsilon=norm.eps,
        standard=(x - mean) / np.sqrt(spread**2 + norm.eps),
        gain=norm.weight.cpu().numpy().copy(),
        shift=norm.bias.cpu().numpy().copy(),
        after=after.cpu().numpy().copy(),
    )
