"""Where a GRU's decoder looks, in words."""

from __future__ import annotations

import numpy as np

from transformer.analysis.alignment import shares_beside


def alignment_sentence(pattern: np.ndarray, expected: np.ndarray) -> str:
    """Which of the encoder's states a GRU looks at; `expected` is the one after the token to be said. [query, key].

    A state has read all up to its token: that of a later one may hold the token to be said as well.
    """
    shares = shares_beside(pattern, expected)
    best = max(shares, key=lambda later: (shares[later], -abs(later)))
    if not best:
        return f"The decoder looks at the token to be said: {shares[0]:.2f} of its attention is there."
    places = f"{abs(best)} token{'s' * (abs(best) > 1)} {'after' if best > 0 else 'before'}"
    return (
        f"The decoder looks {places} the one to be said: {shares[best]:.2f} of its attention is there, and "
        f"{shares[0]:.2f} on that one."
    )
