"""PyTorch's global random generator, for one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_DRAWING = threading.RLock()
"""Weights and dropout are drawn from the global generator: two threads at once would draw from each other's numbers."""


@contextmanager
def drawing(seed: int | None = None, device: torch.device | None = None) -> Iterator[None]:
    """Have the global generator to oneself, begun with a seed if there is one; it is left as it was.

    So is that of `device`, where it is a GPU.
    """
    with _DRAWING, torch.random.fork_rng(devices=[device] if device is not None and device.type == "cuda" else []):
        if seed is not None:
            torch.manual_seed(seed)
        yield
