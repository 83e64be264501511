"""What a mistake does where no model can have it: wrong and right run side by side, and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from transformer.foundation.foreign import shortened


@dataclass(frozen=True)
class Comparison:
    """One quantity, measured with the wrong code and with the right code. An error counts as what comes out."""

    what: str
    wrong: float | str
    right: float | str


@dataclass(frozen=True)
class Demonstration:
    """A sentence, and the numbers that it is made of."""

    sentence: str
    numbers: tuple[Comparison, ...]


def attempted(measure: Callable[[Any], float | str], code: Callable[..., Any], *arguments: Any) -> float | str:
    """What is measured of what some code gives, or the error that it ends in: "RuntimeError: ..."."""
    try:
        return measure(code(*arguments))
    except (RuntimeError, TypeError) as error:
        return f"{type(error).__name__}: {shortened(str(error).splitlines()[0])}"


def shape_of(tensor: Tensor) -> str:
    """A shape as people write it: "2 × 8 × 16"."""
    return " × ".join(map(str, tensor.shape))


def vectors_in(placed: Tensor) -> int:
    """How many different vectors the first sequence of [batch, position, d_model] has."""
    return len(placed[0].unique(dim=0))
