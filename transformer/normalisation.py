"""A norm as a module of a model: its gain, its shift, and what of it is linear while the statistics of a pass are held.

Which norm it is, a plug-in of `transformer.norms` says. Where there is none a model has `NoNorm`, so that whoever asks
for the linear part need not ask first whether there is a norm.
"""

from __future__ import annotations

from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.foundation.registry import PlugInError
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
    norm, x = kind(), torch.arange(12, dtype=torch.float64).view(3, 4).sin() + 0.3
    gain = {"each": x[1] - 2, "one": x[1, :1], "none": None}[norm.gains]
    shift = x[2] + 1 if norm.shifts else None
    divided = norm.centred(x) / (norm.size(x).square() + EPSILON).sqrt()
    wanted = (divided if gain is None else gain * divided) + (0 if shift is None else shift)
    if not torch.allclose(norm.forward(x, gain, shift, EPSILON), wanted, rtol=0, atol=1e-9):
        raise PlugInError(
            f"{kind.__module__} cannot be used: its `forward` is not gain · centred(x) / √(size(x)² + ε) + shift, with "
            "the `centres`, `gains`, `shifts` and `size` that it says"
        )


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
