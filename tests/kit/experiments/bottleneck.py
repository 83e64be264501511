"""Three small models of the bottleneck, their runs, and measurements made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from tests.kit.runs import untrained
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.experiments.bottleneck import KINDS, Bottleneck, Contestant
from transformer.network import Network

SMALL = TaskConfig(task="reverse-translate", min_length=1, length=3, symbols=2)
SHAPES = {
    "gru": ModelConfig(architecture="gru", attention="none", n_layers=1, d_model=6),
    "gru-attention": ModelConfig(architecture="gru", attention="scaled-dot", n_layers=1, d_model=5),
    "transformer": ModelConfig(architecture="encoder-decoder", n_layers=1, n_heads=1, d_model=4, d_ff=4),
}


def small(kind: str) -> RunConfig:
    return RunConfig(task=SMALL, model=SHAPES[kind])


@torch.no_grad()
def own_words(model: Network, question: list[int], separator: int) -> list[int]:
    """What a model says, each token after those that it said itself, the whole of it read again for each."""
    said: list[int] = []
    for _ in question:
        logits = model(torch.tensor([[separator, *said]]), torch.tensor([question]))
        said.append(int(logits[0, -1].argmax()))
    return said


def contestant(kind: str, exact: list[int], *, length: int = 3, lost: str = "") -> Contestant:
    """A measurement of lengths 1 to `length` on 100 sequences; at each length as many are right at every place."""
    config = RunConfig(task=replace(SMALL, length=length), model=SHAPES[kind])
    rows = []
    for n, count in enumerate(exact, 1):
        third, right = n // 3, [100] * (n - n // 3)
        row = {"": [count] * n, "first read": right + [count] * third, "last read": [count] * third + right}[lost]
        rows.append(tuple(row))
    return Contestant(f"run-{kind}", "0" * 16, config, 1000, 60.0, tuple(exact), tuple(rows))


def found_of(one: list[int], attending: list[int], transformer: list[int], **options: Any) -> Bottleneck:
    counts = zip(KINDS, (one, attending, transformer), strict=True)
    contestants = [contestant(kind, exact, length=len(one), **options) for kind, exact in counts]
    return Bottleneck(tuple(contestants), 100, "a machine", {"torch": "2"})


made = untrained
