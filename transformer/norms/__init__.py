"""Norms: what is done to the vector of each token before the next part of a model reads it, or after it was written.

A norm measures one number on a vector, its size, and divides the vector by that. While the size is held at what it was
in a pass, all else that it does is a linear map (centring and gain) and a shift. Direct logits, score terms and
circuits go by these three, so a norm says each of them. `transformer.normalisation` is the module that holds gain and
shift. No PyTorch here: menus and plans read what a norm is without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from transformer.foundation.registry import Registry

EPSILON = 1e-5
"""What is added to the square of a size, so that nothing is divided by 0."""


class Norm(ABC):
    """One kind of norm. Vectors are tensors, float [*batch, d_model]; a size is float [*batch, 1]."""

    title: ClassVar[str]
    """Its name where people read: "LayerNorm"."""
    sign: ClassVar[str]
    """Its name in formulas: "LN"."""
    description: ClassVar[str]
    """What it does to a vector, in words that follow its name."""
    formula: ClassVar[str]
    """LaTeX, with its source in the module's docstring."""
    centres: ClassVar[bool]
    """Is the mean taken off first?"""
    shifts: ClassVar[bool]
    """Is a learned vector added at the end?"""
    size_name: ClassVar[str]
    """What it divides by, in words: "spread"."""
    size_short: ClassVar[str]
    """The same above a picture."""
    size_sign: ClassVar[str]
    """Its sign, without LaTeX: "σ"."""
    size_formula: ClassVar[str]
    """Its formula in LaTeX, with its sign before it; μ is the mean."""

    def centred(self, x: Any) -> Any:
        """The vectors less their means, where this norm takes them off. Linear."""
        return x - x.mean(dim=-1, keepdim=True) if self.centres else x

    @abstractmethod
    def size(self, x: Any) -> Any:
        """What the vectors are divided by, before ε is added to its square."""

    @abstractmethod
    def forward(self, x: Any, gain: Any, shift: Any, epsilon: float) -> Any:
        """gain · centred(x) / √(size(x)² + ε) + shift; `shift` is None where there is none."""


NORMS: Registry[Norm] = Registry(
    Norm,  # type: ignore[type-abstract]
    __name__,
    str(Path(__file__).parent),
)
