"""Random attention: some keys, drawn once and for good ("Big Bird", section 2)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from transformer.masks import Mask, number


@dataclass(frozen=True)
class Random(Mask):
    """A query sees itself, and each other key with a chance of `density` percent; `seed` decides which.

    The draw is a function of query and key alone, so the mask is the same at every length and on every machine: the
    three numbers, mixed by SplitMix64 (Steele, Lea and Flood, 2014, figure 15), modulo 100.
    """

    description: ClassVar[str] = "a query sees itself and a random choice of the other keys"
    density: int = number(50, 0, 100)
    seed: int = number(0)

    def visible(self, query, key, padding):
        places = (
            np.uint64(self.seed) << np.uint64(40) | query.astype(np.uint64) << np.uint64(20) | key.astype(np.uint64)
        )
        return (_mixed(places) % np.uint64(100) < np.uint64(self.density)) | (query == key)


def _mixed(state):
    """The output of SplitMix64 in each state, uint64 [...]; products wrap."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
