"""What reading costs by place in the window: how much is won by what stands before. No PyTorch.

The first tokens of a window are guessed after few others, the last after many. Places are drawn together into
stretches that grow with the distance from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float

from transformer.analysis.intervals import Z95, wilson

ALONE = 4
"""Places that are stretches of their own."""


def stretches(length: int) -> tuple[slice, ...]:
    """The places of a window, counted from 0: four alone, then two stretches for each doubling; the last is cut short.

    >>> named(10)
    ('1', '2', '3', '4', '5–6', '7–8', '9–10')
    """
    edges, width = list(range(ALONE + 1)), 2
    while edges[-1] < length:
        edges += [edges[-1] + width, edges[-1] + 2 * width]
        width *= 2
    edges = [edge for edge in edges if edge < length] + [length]
    return tuple(slice(first, end) for first, end in pairwise(edges))


def named(length: int) -> tuple[str, ...]:
    """The stretches as people count: from 1, the last place included."""
    return tuple(
        str(each.stop) if each.stop - each.start == 1 else f"{each.start + 1}–{each.stop}" for each in stretches(length)
    )


def drawn_together(values: Float[np.ndarray, "*rows target"]) -> Float[np.ndarray, "*rows stretch"]:
    """The mean over each stretch."""
    return np.stack([values[..., each].mean(axis=-1) for each in stretches(values.shape[-1])], axis=-1)


@dataclass(frozen=True)
class ByPlace:
    """The cost in nats and the share that was right, stretch by stretch, each with its 95 % interval."""

    names: tuple[str, ...]
    windows: int
    nats: Float[np.ndarray, "stretch"]
    half: Float[np.ndarray, "stretch"]
    """Half the interval of the nats: 1.96 standard errors over windows; nan for a single window."""
    right: Float[np.ndarray, "stretch"]
    low: Float[np.ndarray, "stretch"]
    high: Float[np.ndarray, "stretch"]

    @classmethod
    def of(cls, nats: Float[np.ndarray, "window target"], right: Bool[np.ndarray, "window target"]) -> ByPlace:
        windows, length = nats.shape
        costs = drawn_together(nats.astype(np.float64))
        spread = costs.std(axis=0, ddof=1) if windows > 1 else np.full(costs.shape[1], np.nan)
        counts = np.array([right[:, each].sum() for each in stretches(length)], dtype=np.float64)
        totals = np.array([right[:, each].size for each in stretches(length)], dtype=np.float64)
        return cls(
            named(length),
            windows,
            costs.mean(axis=0),
            Z95 * spread / windows**0.5,
            counts / totals,
            *wilson(counts, totals),
        )
