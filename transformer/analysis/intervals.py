"""How sure a measured proportion is, or a mean. No PyTorch."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Int, Real

Z95, Z999 = 1.959964, 3.290527
"""Standard normal quantiles of two-sided 95 % and 99.9 %."""
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's t of a two-sided 95 % interval, for 1, 2, … degrees of freedom."""
CAUTION = 4.0
"""Standard errors behind a verdict: with the usual 1.96, one honest mask in thirty was said to leak."""


def wilson(
    correct: Real[np.ndarray, "*n"] | int, total: Real[np.ndarray, "*n"] | int, z: float = Z95
) -> tuple[Float[np.ndarray, "*n"], Float[np.ndarray, "*n"]]:
    """Score interval of a proportion, honest at 0 and 1 where the normal one is not (Wilson, 1927)."""
    share = np.asarray(correct) / total
    centre = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    # The share lies between them; rounding would leave it outside at 0 and at 1.
    return np.asarray(np.clip(centre - half, 0, share)), np.asarray(np.clip(centre + half, share, 1))


def rivals(
    mean: Float[np.ndarray, "n"], low: Float[np.ndarray, "n"], high: Float[np.ndarray, "n"]
) -> Int[np.ndarray, "m"]:
    """Which of several measured values may be the greatest: the one measured as such, and each whose interval overlaps
    its own, the greatest first. Where it is alone, it is the greatest; nan is left out."""
    most = int(np.nanargmax(mean))
    found = np.flatnonzero(high >= low[most])
    return np.array(found[np.argsort(-mean[found], kind="stable")], dtype=np.int64)


def mean_interval(values: Float[np.ndarray, "n"]) -> tuple[float, float, float]:
    """A mean and its 95 % interval: mean ± t · s / √n (Student, 1908), of two values at least."""
    mean = float(values.mean())
    half = t95(len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def t95(freedom: int) -> float:
    """Student's t of a two-sided 95 % interval; beyond the table by its expansion around the normal distribution,
    right to 0.001 (Abramowitz and Stegun, 1964, 26.7.5)."""
    if freedom <= len(T95):
        return T95[freedom - 1]
    terms = (
        (Z95**3 + Z95) / 4,
        (5 * Z95**5 + 16 * Z95**3 + 3 * Z95) / 96,
        (3 * Z95**7 + 19 * Z95**5 + 17 * Z95**3 - 15 * Z95) / 384,
    )
    return Z95 + sum(term / freedom**power for power, term in enumerate(terms, start=1))
