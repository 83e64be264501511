"""Norms: what is done to the vector of each token before the next part of a model reads it, or after it was written.

A norm measures one number on a vector, its size, and divides the vector by that. While the size is held at what it was
in a pass, all else that it does is a linear map (centring and gain) and a shift. Direct logits, score terms and
circuits go by these three, so a norm says each of them. `transformer.normalisation` is the module that holds gain and
shift. No PyTorch here: menus and plans read what a norm is without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Literal

from transformer.foundation.registry import Registry, fault_of_values

Gains = Literal["each", "one", "none"]
"""What a norm scales by at the end: a number for each dimension, one for all of them, or nothing."""
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
    gains: ClassVar[Gains] = "each"
    """By how many learned numbers is it scaled before that?"""
    size_name: ClassVar[str]
    """What it divides by, in words: "spread"."""
    size_short: ClassVar[str]
    """The same above a picture."""
    size_sign: ClassVar[str]
    """Its sign, without LaTeX: "σ"."""
    size_formula: ClassVar[str]
    """Its formula in LaTeX, with its sign before it; μ is the mean."""

    def gain_size(self, d_model: int) -> int:
        """How many numbers its gain has: 0 where it has none."""
        return {"each": d_model, "one": 1, "none": 0}[self.gains]

    def parameters(self, d_model: int) -> int:
        """How many learned numbers one norm of this kind has."""
        return self.gain_size(d_model) + d_model * self.shifts

    def centred(self, x: Any) -> Any:
        """The vectors less their means, where this norm takes them off. Linear."""
        return x - x.mean(dim=-1, keepdim=True) if self.centres else x

    @abstractmethod
    def size(self, x: Any) -> Any:
        """What the vectors are divided by, before ε is added to its square."""

    @abstractmethod
    def forward(self, x: Any, gain: Any, shift: Any, epsilon: float) -> Any:
        """gain · centred(x) / √(size(x)² + ε) + shift; gain, float [d_model] or [1], and shift, float [d_model], are
        None where there is none."""


WANTED = (
    *("title", "sign", "description", "formula", "size_name", "size_short", "size_sign", "size_formula"),
    *("centres", "shifts"),
)
"""What each norm says of itself; of its gains it may keep silent."""


def _fault(found: type[Norm]) -> str:
    """What is missing in what a norm says, or wrong; empty for nothing."""
    return fault_of_values(found, Norm, WANTED)


NORMS: Registry[Norm] = Registry(
    Norm,
    __name__,
    str(Path(__file__).parent),
    fault=_fault,
)
