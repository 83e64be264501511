"""PyTorch's global random generator, for one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

_DRAWING = threading.RLock()
"""Weights and dropout are drawn from the global generator: two threads at once would draw from each other's numbers."""


@contextmanager
def drawing(seed: int | None = None, device: torch.device | None = None) -> Iterator[None]:
    """Have the global generator to oneself, begun with a seed if there is one; it is left as it was.

    So is that of `device`, where it is a GPU.
    """
    kind = None if device is None else device.type
    with ExitStack() as stack:
        stack.enter_context(_DRAWING)
        stack.enter_context(torch.random.fork_rng(devices=[device] if kind == "cuda" else []))
        if kind == "mps":  # which has one generator, and no number
            stack.callback(torch.mps.set_rng_state, torch.mps.get_rng_state())
        if seed is not None:
            torch.manual_seed(seed)
        yield
