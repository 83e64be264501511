"""How long one pass takes, against the length of what is read: recurrent layers and transformer blocks of one size."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from transformer.blocks import Block
from transformer.config import ModelConfig
from transformer.foundation.drawing import drawing
from transformer.recurrent.sequence import Gates

WIDTH, HEADS = 64, 4
REPEATS = 7


@dataclass(frozen=True)
class Passes:
    """Both measured on one machine, the same inputs."""

    lengths: tuple[int, ...]
    recurrent: Float[np.ndarray, "length"]
    """Milliseconds of a pass over one sequence, the fastest of REPEATS."""
    attention: Float[np.ndarray, "length"]
    weights: tuple[int, int]
    """Parameters: of the recurrent layers, of the blocks."""


def same_size(n_layers: int) -> tuple[Gates, nn.ModuleList]:
    """GRU layers as wide as makes them as large as that many transformer blocks, and the blocks."""
    with drawing(0):
        blocks = nn.ModuleList(Block(ModelConfig(d_model=WIDTH, n_heads=HEADS)) for _ in range(n_layers))
        wanted = parameters(blocks) / n_layers
        # A GRU layer has 6 d² weights and 6 d biases.
        width = round((wanted / 6 + 0.25) ** 0.5 - 0.5)
        return Gates(width, width, n_layers), blocks


def parameters(network: nn.Module) -> int:
    """How many numbers it learns."""
    return sum(weight.numel() for weight in network.parameters())


@torch.no_grad()
def time_passes(n_layers: int, lengths: Sequence[int], device: torch.device, repeats: int = REPEATS) -> Passes:
    """Read one sequence of each length, all its tokens known, as in training."""
    gates, blocks = same_size(n_layers)
    gates, blocks = gates.to(device).eval(), blocks.to(device).eval()
    first = gates.layers[0]
    assert isinstance(first, nn.GRU)
    width = first.input_size

    def recurrent(length: int) -> Callable[[], object]:
        x = torch.zeros(1, length, width, device=device)
        return lambda: gates(x)

    def attention(length: int) -> Callable[[], object]:
        x = torch.zeros(1, length, WIDTH, device=device)
        mask = torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]

        def run() -> None:
            resid = x
            for block in blocks:
                resid = block(resid, mask)

        return run

    return Passes(
        tuple(lengths),
        np.array([_milliseconds(recurrent(length), device, repeats) for length in lengths]),
        np.array([_milliseconds(attention(length), device, repeats) for length in lengths]),
        (parameters(gates), parameters(blocks)),
    )


def _milliseconds(run: Callable[[], object], device: torch.device, repeats: int) -> float:
    """The fastest of some runs, after one that is not counted: the rest is what else the machine does."""
    taken = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        run()
        if device.type != "cpu":
            torch.accelerator.synchronize(device)
        taken.append(time.perf_counter() - began)
    return 1000 * min(taken[1:])
