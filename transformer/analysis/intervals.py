"""How sure a measured proportion is. No PyTorch."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Real

Z95, Z999 = 1.959964, 3.290527
"""Standard normal quantiles of two-sided 95 % and 99.9 %."""
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
