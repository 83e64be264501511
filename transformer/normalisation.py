"""A norm as a module of a model: its gain, its shift, and what of it is linear while the statistics of a pass are held.

Which norm it is, a plug-in of `transformer.norms` says. Where there is none a model has `NoNorm`, so that whoever asks
for the linear part need not ask first whether there is a norm.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.foundation.foreign import shortened
from transformer.foundation.registry import PlugInError
from transformer.foundation.words import counted
from transformer.norms import EPSILON, NORMS, Norm

Vectors = Float[Tensor, "*batch d_model"]


class Normalisation(nn.Module):
    """One norm of a model. For every x: forward(x) = linear(x, at=x) + shift."""

    weight: nn.Parameter | None
    """Its gain, float [d_model] or [1], under the name that PyTorch's norms have for it; None where it has none."""
    bias: nn.Parameter | None
    """Its shift, likewise, float [d_model]."""

    def __init__(self, kind: Norm, d_model: int) -> None:
        super().__init__()
        require_law(type(kind))
        self.kind, self.eps, gains = kind, EPSILON, kind.gain_size(d_model)
        self.register_parameter("weight", nn.Parameter(torch.ones(gains)) if gains else None)
        self.register_parameter("bias", nn.Parameter(torch.zeros(d_model)) if kind.shifts else None)

    def forward(self, x: Vectors) -> Vectors:
        normed: Tensor = self.kind.forward(x, self.weight, self.bias, self.eps)
        return normed

    def centre_and_scale(self, x: Vectors) -> Vectors:
        """Centring and gain: the linear map that its weights alone make, without the division."""
        centred: Tensor = self.kind.centred(x)
        return centred if self.weight is None else centred * self.weight

    def divisor(self, at: Vectors) -> Float[Tensor, "*batch one"]:
        """What it divides the vectors `at` by: √(size² + ε)."""
        size: Tensor = self.kind.size(at)
        return (size.square() + self.eps).sqrt()

    def linear(self, x: Vectors, at: Vectors) -> Vectors:
        """The linear map that this norm is at the vectors `at`: it divides by what it divides those by."""
        return self.centre_and_scale(x) / self.divisor(at)

    @property
    def shift(self) -> Tensor | float:
        """What it adds, whatever it reads: a vector, or 0."""
        return 0.0 if self.bias is None else self.bias


@cache
def require_law(kind: type[Norm]) -> None:
    """Raises PlugInError for a norm that does otherwise than it says: then every formula about it would be false."""
    try:
        fault = _broken_law(kind())
    except PlugInError as error:
        fault = str(error)
    if fault:
        raise PlugInError(f"the norm {kind.__module__} cannot be used: {fault}")


def _broken_law(norm: Norm) -> str:
    """What a norm does otherwise than it says, to three sequences of two tokens each; empty for nothing.

    The vectors of the first are short: there ε is much. Raises PlugInError for a method that fails.
    """
    scales = torch.tensor([0.1, 1, 3], dtype=torch.float64)[:, None, None]
    x = scales * ((torch.arange(24, dtype=torch.float64) ** 1.5).view(3, 2, 4).sin() + 0.3)
    gain = {"each": x[1, 0] - 2, "one": x[1, 0, :1], "none": None}[norm.gains]
    shift = x[2, 0] + 1 if norm.shifts else None
    size = _ask(norm, "size", x)
    if size.shape != (3, 2, 1):
        return (
            f"its `size` has the shape {[*size.shape]} for vectors of the shape [3, 2, 4], and must have [3, 2, 1]: "
            "one number a vector, taken over the last axis, which is kept (dim=-1, keepdim=True)"
        )
    for method, rest in (("size", ()), ("centred", ()), ("forward", (gain, shift, EPSILON))):
        alone, among = (_ask(norm, method, vectors, *rest) for vectors in (x[1:2, 1:], x))
        if not _is_near(alone, among[1:2, 1:]):
            return (
                f"its `{method}` of a token alone is not that of the same token among others: it must be taken over "
                "the numbers of one vector, which are the last axis (dim=-1)"
            )
    divided = norm.centred(x) / (size.square() + EPSILON).sqrt()
    wanted = (divided if gain is None else gain * divided) + (0 if shift is None else shift)
    if not _is_near(_ask(norm, "forward", x, gain, shift, EPSILON), wanted):
        return (
            "its `forward` is not gain · centred(x) / √(size(x)² + ε) + shift, with the `centres`, `gains`, `shifts` "
            "and `size` that it says"
        )
    return ""


def _ask(norm: Norm, method: str, x: Tensor, *rest: Any) -> Tensor:
    """What a method of a norm makes of vectors. Raises PlugInError where it fails, or makes no tensor."""
    learned = "".join(
        f"; `{name}` is {'None' if weights is None else counted(weights.numel(), 'number')}, as it says"
        for name, weights in zip(("gain", "shift"), rest, strict=False)
    )
    try:
        made = getattr(norm, method)(x, *rest)
    except Exception as error:  # whatever a stranger's code ends in
        why = f"{type(error).__name__}: {shortened(str(error))}"
        raise PlugInError(f"its `{method}` fails ({why}){learned}") from None
    if not isinstance(made, Tensor):
        raise PlugInError(f"its `{method}` returns {shortened(made)}, and must return a tensor")
    return made


def _is_near(one: Tensor, other: Tensor) -> bool:
    """Are two results equal but for rounding to 32 bits?"""
    return one.shape == other.shape and torch.allclose(one.double(), other.double(), rtol=0, atol=1e-5)


class NoNorm(Normalisation):
    """Where a model has no norm: every vector stays as it is."""

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def forward(self, x: Vectors) -> Vectors:
        return x

    def centre_and_scale(self, x: Vectors) -> Vectors:
        return x

    def divisor(self, at: Vectors) -> Float[Tensor, "*batch one"]:
        return torch.ones_like(at[..., :1])

    def linear(self, x: Vectors, at: Vectors) -> Vectors:
        return x

    @property
    def shift(self) -> Tensor | float:
        return 0.0


def norm_at(config: ModelConfig, place: str) -> Normalisation:
    """The norm of a model at a place where it may stand, "pre" or "post": `NoNorm` where it stands elsewhere."""
    return Normalisation(NORMS[config.norm_kind](), config.d_model) if config.norm == place else NoNorm()
