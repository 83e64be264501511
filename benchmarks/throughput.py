"""How fast a run's shape learns: `python benchmarks/throughput.py [--run checkpoints/shakespeare] [--device cuda]`.

Tokens a second of the same training, batches and optimiser: ours, whose attention is fused or written out, in float32
or with matrix products in bfloat16, or through `torch.compile`, beside `torch.nn.TransformerEncoder` of the same shape
(its positions are learned, its embeddings tied as ours are). All take turns within the same minute, so that a busy
neighbour slows all alike, and the ratio is taken turn by turn. No dropout anywhere. On a CPU `torch.compile` needs a
C++ compiler; compiling is not in the rates, and said apart. --save writes THROUGHPUT.md. --quick takes one step a turn
of a small shape, and compiles nothing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from kit.pages import device_option, load, machine, options, page, spread, table
from kit.rivals import make, steps_of
from torch import nn

from transformer import attention
from transformer.config import RunConfig
from transformer.training.runs import DEFAULT_ROOT, Run

PAGE = "THROUGHPUT.md"
FUSED, NEVER = 1, 10**9
"""From how many keys on attention is fused."""


@dataclass(frozen=True)
class Way:
    """One way to take the same step."""

    name: str
    precision: str = "float32"
    model: str = "ours"
    fused_from: int = FUSED
    compiled: bool = False

    def training(self, config: RunConfig, device: torch.device) -> Iterator[int]:
        """Its steps, one after another."""
        settings = replace(config.training, precision=self.precision)
        config = replace(config, training=settings)
        model = make(self.model, config).to(device)
        if self.model != "ours" and config.model.tied:
            model.unembedding.weight = model.embedding.weight
        with torch.no_grad():  # as long as ours are: theirs are drawn for a table of its own
            model.embedding.weight.mul_(config.model.d_model**-0.5 if self.model != "ours" else 1.0)
        return steps_of(wrapped(model) if self.compiled else model, config)


WAYS = (
    Way("ours, fused, float32"),
    Way("ours, fused, bfloat16", "bfloat16"),
    Way("ours, written out, float32", fused_from=NEVER),
    Way("ours, written out, bfloat16", "bfloat16", fused_from=NEVER),
    Way("torch.nn.TransformerEncoder, float32", model="torch.nn.TransformerEncoder"),
    Way("torch.nn.TransformerEncoder, bfloat16", "bfloat16", "torch.nn.TransformerEncoder"),
)
COMPILED = Way("ours, fused, bfloat16, torch.compile", "bfloat16", compiled=True)


def wrapped(model: nn.Module) -> nn.Module:
    """The model with its forward pass compiled; its weights are the same."""
    model.compile()
    return model


def ways_on(device: torch.device) -> Sequence[Way]:
    """Those that this machine can go: without a C++ compiler nothing can be compiled for its CPU."""
    can_compile = device.type == "cuda" or shutil.which("g++") or shutil.which("clang++")
    return (*WAYS, COMPILED) if can_compile else WAYS


def measured(
    config: RunConfig, device: torch.device, turns: int, steps: int, ways: Sequence[Way]
) -> tuple[dict[str, list[float]], float]:
    """Tokens a second of each way, turn by turn, and the seconds that compiling took: the first turn warms up."""
    config = replace(
        config,
        model=replace(config.model, dropout=0.0),
        training=replace(config.training, max_steps=10**6, learning_rate=1e-4),
    )
    running = {way: way.training(config, device) for way in ways}
    tokens = steps * config.training.batch_size * config.task.length
    rates: dict[str, list[float]] = {way.name: [] for way in running}
    compiling = 0.0
    for turn in range(turns + 1):
        for way, run in running.items():
            attention.FUSED = way.fused_from
            rested(device)
            began = time.perf_counter()
            for _ in range(steps):
                next(run)
            rested(device)
            took = time.perf_counter() - began
            if turn:
                rates[way.name].append(tokens / took)
            elif way.compiled:
                compiling = took
        print(f"turn {turn} of {turns}", file=sys.stderr, flush=True)
    return rates, compiling


def rested(device: torch.device) -> None:
    """Wait until a GPU has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def parsed() -> argparse.Namespace:
    parser = options(__doc__, PAGE)
    device_option(parser)
    parser.add_argument("--run", type=Path, help="the run whose shape it is; left out, the one that reads Shakespeare")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2, help="steps in a turn")
    arguments = parser.parse_args()
    if arguments.turns < 1 or arguments.steps < 1:
        parser.error("at least one turn of one step")
    if arguments.quick:
        arguments.turns = arguments.steps = 1
    if arguments.run is None:
        arguments.run = DEFAULT_ROOT / ("reverse" if arguments.quick else "shakespeare")
    return arguments


def main() -> None:
    arguments = parsed()
    try:
        config = Run(arguments.run).config
    except ValueError as error:
        sys.exit(f"error: {error}")
    torch.set_num_threads(1)
    busy, ways = load(), WAYS if arguments.quick else ways_on(arguments.device)
    rates, compiling = measured(config, arguments.device, arguments.turns, arguments.steps, ways)
    first = WAYS[0].name
    with page(PAGE, "Tokens a second while it learns", save=arguments.save):
        print(
            f"{machine(arguments.device, busy)}, one thread used. {config.model.shape}, width {config.model.d_model}, "
            f"{config.training.batch_size} × {config.task.length} tokens a step, {arguments.steps} steps each in turn, "
            f"{arguments.turns} turns."
        )
        table("", "tokens a second, median", "least to most", f"it ÷ {first}, median", "least to most")
        for name, found in rates.items():
            ratios = [its / ours for its, ours in zip(found, rates[first], strict=True)]
            print(f"| {name} | {spread(found, 0)} | {spread(ratios, 2)} |")
        if compiling:
            print(f"\nThe first {arguments.steps} steps through `torch.compile` took {compiling:.0f} s, all included.")


if __name__ == "__main__":
    main()
