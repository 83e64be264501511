"""Why scores are divided by √d: how far dot products spread with the width, and what softmax makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

WIDTHS = tuple(2**i for i in range(10))
KEYS, DRAWS = 10, 1000


@dataclass(frozen=True, eq=False)
class Growth:
    """Measured on random queries and keys whose numbers are independent, with mean 0 and variance 1."""

    widths: Int[np.ndarray, "width"]
    keys: int
    """That each query meets."""
    draws: int
    """Queries at each width."""
    spread: Float[np.ndarray, "width"]
    """Standard deviation of q · k over all draws and keys; in theory √d."""
    largest: Float[np.ndarray, "width"]
    """The largest share of a softmax over the keys' q · k, on average over the draws."""
    largest_scaled: Float[np.ndarray, "width"]
    """The same of q · k / √d."""

    @property
    def law(self) -> Float[np.ndarray, "width"]:
        """√d: a sum of d products, each of mean 0 and variance 1 (Vaswani et al., 2017, section 3.2.1, note 4)."""
        return np.sqrt(self.widths.astype(np.float64))


def growth(widths: tuple[int, ...] = WIDTHS, *, keys: int = KEYS, draws: int = DRAWS, seed: int = 0) -> Growth:
    """Draw queries and keys of each width, each width from a stream of its own, and measure."""
    found = []
    for width in widths:
        rng = np.random.default_rng([seed, width])
        query = rng.standard_normal((draws, 1, width), dtype=np.float32)
        key = rng.standard_normal((draws, keys, width), dtype=np.float32)
        dots = (query * key).sum(axis=-1, dtype=np.float64)
        found.append((dots.std(), _largest_share(dots), _largest_share(dots / np.sqrt(width))))
    spread, largest, scaled = np.array(found).T
    return Growth(np.array(widths), keys, draws, spread, largest, scaled)


def _largest_share(scores: Float[np.ndarray, "draw key"]) -> float:
    """1 / Σ exp(score - largest): the softmax of the largest score itself, on average."""
    return float((1 / np.exp(scores - scores.max(axis=-1, keepdims=True)).sum(axis=-1)).mean())
