"""What a value in a stored file must be. Each raises ValueError with what it is instead."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from transformer.foundation.foreign import LARGEST, shortened

LATEST = 1e11
"""A Unix time beyond this is none."""


def expect(condition: bool | np.bool_, what: str) -> None:
    if not condition:
        raise ValueError(what)


def text(value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{shortened(value)} is no text")


def all_texts(values: tuple[Any, ...]) -> bool:
    return all(isinstance(value, str) for value in values)


def whole(value: Any) -> int:
    """A count: a whole number that is not negative."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LARGEST:
        raise ValueError(f"{shortened(value)} is no count")
    return value


def number(value: Any, low: float = -math.inf, high: float = math.inf) -> None:
    """A number; where it is bounded, that also rules out what is none (nan), which a failed training may hold."""
    good = isinstance(value, int | float) and not isinstance(value, bool)
    good = good and (isinstance(value, float) or abs(value) < LARGEST)
    bounded = low > -math.inf or high < math.inf
    if not good or (bounded and not low <= value <= high):
        raise ValueError(f"{shortened(value)} is no number that could stand here")
