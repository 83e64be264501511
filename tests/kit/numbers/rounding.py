"""How far two computations of one number may lie apart: the one tolerance of the tests, and where it comes from.

Equal to the last bit is only what ONE library computes TWICE in ONE way on one machine: saved and loaded, paused and
resumed, a replayed step. A test of that compares with `==`, `torch.equal` or `np.array_equal`.

Whatever is computed in two ways, by two libraries or at two shapes, and whatever was recorded, is rounded in another
order on each processor. A test of that says `assert found == near(expected)`.

Each rounding moves a number by at most half a unit in its last place, eps / 2 of its magnitude. In a sum of n products
at most n of them add up, so that it is off by at most n · eps / 2 of the largest partial sum (Higham, Accuracy and
Stability of Numerical Algorithms, section 3.1). Two computations may be off in opposite directions: n · eps. A single
sum, product or quotient is rounded alike by everybody (IEEE 754).

A decision, such as which symbol is the likeliest, hangs on rounding where two are equal to that. Of a count of
decisions a test says `assert found == near_count(expected, of)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

ROUNDINGS = 64
"""Roundings in a row on the way to a number: the width of the tests' models is at most this."""
SHIPPED = 1024
"""The same for a shipped model: some ten products in a row, each as wide as 64 to 128."""


def tolerance(largest: float = 1.0, roundings: int = ROUNDINGS, dtype: Any = np.float32) -> float:
    """How far two computations may lie apart, of numbers that are at most so large on the way."""
    return float(roundings * np.finfo(dtype).eps * largest)


def near(expected: Any, roundings: int = ROUNDINGS, largest: float = 1.0, dtype: Any = np.float32) -> Any:
    """What equals every number, list, array or tensor that is `expected` but for rounding; NaN equals NaN.

    `largest` is the largest number on the way to it, where that is more than 1 and more than what is expected.
    """
    values = np.asarray(expected.detach() if isinstance(expected, torch.Tensor) else expected, dtype=np.float64)
    known = np.abs(values[np.isfinite(values)])
    room = tolerance(max(largest, float(known.max(initial=0.0))), roundings, dtype)
    return pytest.approx(values if values.ndim else float(values), rel=0, abs=room, nan_ok=True)


def near_count(expected: Any, of: int) -> Any:
    """What equals every count of `expected`, each of so many decisions of a model, but for those that are nearly ties.

    Logits are spread over 1 or more, and each is off by at most `tolerance(8)`, 6e-5: fewer than 1 in 1,000 decisions
    is as close as that.
    """
    return pytest.approx(np.asarray(expected), rel=0, abs=1 + of // 1000)
