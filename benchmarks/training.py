"""How long learning takes: `python benchmarks/training.py [--seeds 5] > benchmarks/RESULTS.md`.

One thread, the CPU, one process, after a warm-up; only the click is measured in a process of its own, as it happens in
the dashboard. What is compared is taken in turns within the same minute, so that a busy neighbour slows both alike.
Quiet the machine first: the load is printed with the numbers.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import build
from transformer.training.loop import TRAINING_STREAM, target_weights, train, weighted_loss
from transformer.training.runs import Run
from transformer.training.worker import Spare, warm_up

PRESETS = {
    "reversal, learned positions (the default)": RunConfig(),
    "reversal, sinusoidal positions": RunConfig(model=ModelConfig(positions="sinusoidal")),
    "reversal in place (reverse-aligned)": RunConfig(task=TaskConfig(task="reverse-aligned")),
    "reversal as translation (reverse-translate)": RunConfig(task=TaskConfig(task="reverse-translate")),
}
WARM = 10.0
"""Seconds in which a spare becomes warm; in the dashboard it has long been when somebody clicks."""
PATIENCE = 120.0
ROUNDS, STEPS = 15, 20
"""Turns of each model, and steps in a turn, when two are compared."""


def with_seed(config: RunConfig, seed: int) -> RunConfig:
    """The run with another seed, on the CPU."""
    return RunConfig(task=config.task, model=config.model, training=TrainingConfig(seed=seed, device="cpu"))


def spread(values: list[float], digits: int) -> str:
    """Median, least and most, as two cells of a table."""
    low, middle, high = (f"{f(values):,.{digits}f}" for f in (min, statistics.median, max))
    return f"{middle} | {low} to {high}"


def until_solved(config: RunConfig, seeds: int) -> str:
    """Steps and seconds until the training itself says that it is solved, over seeds."""
    last = []
    for seed in range(seeds):
        run = with_seed(config, seed)
        *_, step = train(build(run), run)
        last.append(step)
    solved = [step for step in last if step.solved]
    if not solved:
        return f"| – | – | – | – | 0 of {seeds}"
    steps, seconds = [float(step.step) for step in solved], [step.seconds for step in solved]
    return f"| {spread(steps, 0)} | {spread(seconds, 2)} | {len(solved)} of {seeds}"


def after_the_click(seed: int, folder: Path) -> tuple[float, float]:
    """Seconds from handing a warm worker its job to the first line of metrics, and to the one that says solved."""
    spare = Spare()
    time.sleep(WARM)
    began = time.perf_counter()
    run = Run.create(folder, with_seed(RunConfig(), seed))
    spare.train(run)
    metrics = folder / "metrics.jsonl"
    first = 0.0
    while (now := time.perf_counter() - began) < PATIENCE:
        text = metrics.read_text() if metrics.exists() else ""
        if not first and "\n" in text:
            first = now
        if '"solved": true' in text:
            spare.process.wait(timeout=PATIENCE)
            return first, now
        time.sleep(0.002)
    raise TimeoutError(f"seed {seed}: not solved within {PATIENCE:.0f} s")


class TorchEncoder(nn.Module):
    """The default model from PyTorch's own parts: nn.TransformerEncoder, pre-norm, causal, and the same ends."""

    def __init__(self, config: ModelConfig, *, d_vocab: int, n_ctx: int) -> None:
        super().__init__()
        self.scale = config.d_model**0.5
        self.embedding = nn.Embedding(d_vocab, config.d_model)
        self.positions = nn.Parameter(torch.randn(n_ctx, config.d_model))
        layer = nn.TransformerEncoderLayer(
            config.d_model, config.n_heads, config.d_ff, dropout=0.0, batch_first=True, norm_first=True
        )
        self.stack = nn.TransformerEncoder(
            layer, config.n_layers, nn.LayerNorm(config.d_model), enable_nested_tensor=False
        )
        self.unembedding = nn.Linear(config.d_model, d_vocab)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(n_ctx))

    def forward(self, tokens: Tensor) -> Tensor:
        embedded = self.embedding(tokens) * self.scale + self.positions[: tokens.shape[1]]
        return self.unembedding(self.stack(embedded, mask=self.mask, is_causal=True))


def steps_of(model: nn.Module, config: RunConfig) -> Iterator[None]:
    """The same training for either model: batches, loss, clipping and AdamW as in `transformer.training.loop`."""
    task, settings = config.build_task(), config.training
    rng = np.random.default_rng([settings.seed, TRAINING_STREAM])
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    while True:
        batch = task.batch(rng, settings.batch_size)
        weights = torch.from_numpy(target_weights(batch, settings))
        loss = weighted_loss(model(torch.from_numpy(batch.tokens)), torch.from_numpy(batch.targets), weights)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimiser.step()
        yield


def against_torch(config: RunConfig) -> tuple[list[float], list[float]]:
    """Steps a second of our model and of PyTorch's, turn by turn."""
    task = config.build_task()
    ours = build(config)
    theirs = TorchEncoder(config.model, d_vocab=task.d_vocab, n_ctx=task.n_ctx)
    sizes = [sum(weight.numel() for weight in model.parameters()) for model in (ours, theirs)]
    assert sizes[0] == sizes[1], sizes
    runs = [steps_of(ours, config), steps_of(theirs, config)]
    rates: list[list[float]] = [[], []]
    for turn in range(ROUNDS + 1):
        for run, found in zip(runs, rates, strict=True):
            began = time.perf_counter()
            for _ in range(STEPS):
                next(run)
            if turn:  # the first one warms up
                found.append(STEPS / (time.perf_counter() - began))
    return rates[0], rates[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5, help="how many seeds, from 0 on")
    seeds = parser.parse_args().seeds
    if seeds < 1:
        parser.error("at least one seed")
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    print(f"measuring, {seeds} seeds; the load is {load}", file=sys.stderr)
    torch.set_num_threads(1)
    warm_up()

    print("# Training times\n")
    print("Made by `python benchmarks/training.py > benchmarks/RESULTS.md`; what is measured stands there.\n")
    print(
        f"{date.today()}: {os.cpu_count()} cores ({platform.machine()}), one thread used, load average {load} at the "
        f"beginning; Python {platform.python_version()}, torch {torch.__version__}; seeds 0 to {seeds - 1}.\n"
    )
    print("## Until it is solved\n")
    print("| | steps, median | least to most | seconds, median | least to most | solved |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, config in PRESETS.items():
        print(f"| {name} {until_solved(config, seeds)} |", flush=True)

    print("\n## After the click\n")
    print("The default reversal through the warm worker, from handing over the job.\n")
    with tempfile.TemporaryDirectory() as folder:
        clicks = [after_the_click(seed, Path(folder) / str(seed)) for seed in range(seeds)]
    print("| | seconds, median | least to most |")
    print("|---|---:|---:|")
    for name, values in zip(("the first step is on disk", "it is solved"), zip(*clicks, strict=True), strict=True):
        print(f"| {name} | {spread(list(values), 2)} |", flush=True)

    ours, theirs = against_torch(with_seed(RunConfig(), 0))
    ratio = [one / other for one, other in zip(ours, theirs, strict=True)]
    print("\n## Beside PyTorch's own\n")
    print(
        "The default model and `torch.nn.TransformerEncoder` of the same shape, same optimiser, batches and loss, "
        f"{STEPS} steps each in turn, {ROUNDS} turns.\n"
    )
    print("| | median | least to most |")
    print("|---|---:|---:|")
    print(f"| ours, steps a second | {spread(ours, 0)} |")
    print(f"| PyTorch's, steps a second | {spread(theirs, 0)} |")
    print(f"| ours / PyTorch's | {spread(ratio, 2)} |")


if __name__ == "__main__":
    main()
