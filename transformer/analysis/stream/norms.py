"""A norm on one token's vector, step by step: centred, divided by its size, scaled, shifted, as far as it does it.

What each norm does, and its source, stand in `transformer.norms`. Each token is normalised by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.analysis.assumptions import norm_of
from transformer.analysis.sample import lay_out, observe_batch
from transformer.analysis.stream.sublayers import Sublayer, sublayer_of
from transformer.config import ConfigError
from transformer.model import Transformer
from transformer.normalisation import NoNorm, Normalisation
from transformer.observation import Observation
from transformer.tasks import Question, Task
from transformer.trace import only

NONE = "this model has no norms"


@dataclass(frozen=True, eq=False)
class Normed:
    """One token's vector before and after the norm of a sub-layer."""

    before: Float[np.ndarray, "d_model"]
    """Pre-norm: the residual stream. Post-norm: the stream and the sub-layer's output, added."""
    mean: float
    """Of the numbers in `before`, whether the norm takes it off or not."""
    size: float
    """What the norm measures: of LayerNorm the standard deviation, of RMSNorm the root mean square; without ε."""
    epsilon: float
    divisor: float
    """What it divides by: √(size² + ε)."""
    centred: Float[np.ndarray, "d_model"]
    """`before`, less its mean where the norm takes that off."""
    standard: Float[np.ndarray, "d_model"]
    """centred / divisor."""
    sizes: tuple[float, ...]
    """What the norm measures on `before`, `centred`, `standard` and `after`, one after the other."""
    gain: Float[np.ndarray, "gain"] | None
    """One number a dimension, or one for all; None where the norm does not scale."""
    shift: Float[np.ndarray, "d_model"] | None
    """None where the norm adds nothing."""
    after: Float[np.ndarray, "d_model"]
    """gain · standard + shift, as far as it has them: post-norm as the pass recorded it, pre-norm by the module."""


@torch.no_grad()
def most_changed(
    model: Transformer,
    task: Task,
    question: Question,
    paths: Sequence[str],
    *,
    said: Int[np.ndarray, "answer"] | None = None,
) -> tuple[str, int]:
    """The sub-layer, of these `paths`, and the token whose vector its norm changes most before gain and shift.

    Farthest by |mean| + |size - 1|, of a norm that does not centre by |size - 1|; the token's place is counted from 0.
    Of equals the first. Raises ConfigError for a model without norms.
    """
    sublayers = {path: sublayer_of(model, path) for path in paths}
    sites = [site for each in sublayers.values() for site in (each.reads, each.out)]
    seen = observe_batch(model, lay_out(task, question, said=said), (), only(*sites))
    far = {}
    for path, each in sublayers.items():
        x, kind = _met(model, each, seen).cpu().double(), _norm(model, each).kind
        taken_off = x.mean(dim=-1).abs() if kind.centres else 0.0
        far[path] = (taken_off + (kind.size(x)[..., 0] - 1).abs()).numpy()
    path = max(far, key=lambda each: float(far[each].max()))
    return path, int(far[path].argmax())


def _norm(model: Transformer, sublayer: Sublayer) -> Normalisation:
    """The norm of a sub-layer, where it stands. Raises ConfigError where there is none."""
    norm = norm_of(sublayer.around.before if model.config.norm == "pre" else sublayer.around.after)
    if isinstance(norm, NoNorm):
        raise ConfigError(NONE)
    return norm


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
    """The norm of the sub-layer `path` ("decoder.0.self_attention") at one token, its place counted from 0.

    `said` is read in place of the right answer. Raises ConfigError for a model without norms.
    """
    sublayer = sublayer_of(model, path)
    norm = _norm(model, sublayer)
    seen = observe_batch(
        model, lay_out(task, question, said=said), (), only(sublayer.reads, sublayer.out, sublayer.after)
    )
    before = _met(model, sublayer, seen)[place]
    after = norm(before) if model.config.norm == "pre" else seen[sublayer.after][0, place]
    x = before.cpu().double()
    centred, divisor = norm.kind.centred(x), norm.divisor(x)
    steps = (x, centred, centred / divisor, after.cpu().double())
    return Normed(
        before=before.cpu().numpy().copy(),
        mean=float(x.mean()),
        size=float(norm.kind.size(x)),
        epsilon=norm.eps,
        divisor=float(divisor),
        centred=centred.numpy(),
        standard=(centred / divisor).numpy(),
        sizes=tuple(float(norm.kind.size(each)) for each in steps),
        gain=None if norm.weight is None else norm.weight.cpu().numpy().copy(),
        shift=None if norm.bias is None else norm.bias.cpu().numpy().copy(),
        after=after.cpu().numpy().copy(),
    )
