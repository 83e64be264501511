"""What waits for what: which states of a network can be computed when, and how long the way through it is. No PyTorch.

"Attention Is All You Need" (Vaswani et al., 2017), section 4 and table 1: a recurrent layer needs O(n) operations one
after the other and has paths of length O(n), a self-attention layer O(1) of both. Here both are counted, on the graph.
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int

State = tuple[int, int]
"""A layer and a position. Layer 0 are the tokens, 1 is the first that computes; positions count from 0."""
Kind = Literal["recurrent", "attention", "writing"]


def waits_for(kind: Kind, n_layers: int, mask: Bool[np.ndarray, "position position"]) -> dict[State, tuple[State, ...]]:
    """For each state of a stack, and each token, what it is made of.

    "recurrent": the state before, and the layer below. "attention": the layer below wherever `mask` lets it look, and
    at its own place. "writing": attention as well, but each token is what the uppermost layer said at the one before.
    """
    places = range(len(mask))
    said = {place: ((n_layers, place - 1),) for place in places[1:]} if kind == "writing" else {}
    found: dict[State, tuple[State, ...]] = {(0, place): said.get(place, ()) for place in places}
    for layer in range(1, n_layers + 1):
        for place in places:
            if kind == "recurrent":
                before = ((layer, place - 1),) if place else ()
                found[layer, place] = (*before, (layer - 1, place))
            else:
                found[layer, place] = tuple((layer - 1, key) for key in places if mask[place, key] or key == place)
    return found


def moments(waits: dict[State, tuple[State, ...]]) -> Int[np.ndarray, "layer position"]:
    """The earliest moment, from 1, at which each state can be computed: one after the last of those it waits for.

    A token costs no moment of its own. Raises graphlib.CycleError where states wait for each other: nobody can write
    under a mask that looks ahead.
    """
    found: dict[State, int] = {}
    for state in TopologicalSorter(waits).static_order():
        found[state] = (state[0] > 0) + max((found[other] for other in waits[state]), default=0)
    layers, last = (max(state[axis] for state in found) for axis in (0, 1))
    return np.array([[found[layer, place] for place in range(last + 1)] for layer in range(1, layers + 1)])


def way(waits: dict[State, tuple[State, ...]]) -> int | None:
    """States on the shortest way from the first token to the output at the last position; None if there is none."""
    top, last = (max(state[axis] for state in waits) for axis in (0, 1))
    here, length, seen = {(top, last)}, 0, set[State]()
    while here:
        if (0, 0) in here:
            return length
        seen |= here
        here = {other for state in here for other in waits[state]} - seen
        length += 1
    return None
