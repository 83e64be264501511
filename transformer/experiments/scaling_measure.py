"""Train models of several widths with and without the division by the root of d_head, and measure them on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.experiments.scaling import Scaling, Trial
from transformer.experiments.trials import carry_out_trials
from transformer.mistakes import MISTAKES
from transformer.model import Transformer, build
from transformer.network import Network
from transformer.observation import observe
from transformer.presets import QUICK
from transformer.tasks import Batch
from transformer.training.loop import Training
from transformer.training.recording import details

MISTAKE = "scale-missing"
WIDTHS = (16, 32, 64, 128, 256)
RATES = (QUICK.learning_rate, 3e-3)
SEEDS = (0, 1, 2, 3, 4)
STEPS = (30, 60, 100, 150)
SEQUENCES = 1024
FRESH = 99
"""The seed of the sequences on which all are measured."""


def plan(widths: tuple[int, ...] = WIDTHS, seeds: tuple[int, ...] = SEEDS, steps: tuple[int, ...] = STEPS) -> Scaling:
    """What will be trained: the lab's small decoder, made narrower and wider, on its quick recipe and a slower one."""
    model, task = ModelConfig(), TaskConfig()
    versions = details(torch.device("cpu"))["versions"]
    return Scaling(
        widths=widths,
        heads=model.n_heads,
        layers=model.n_layers,
        rates=RATES,
        seeds=seeds,
        steps=steps,
        length=task.length,
        batch=QUICK.batch_size,
        sequences=SEQUENCES,
        versions=versions,
    )


def carry_out(planned: Scaling, path: Path, processes: int = 1) -> Iterator[Scaling]:
    """Train and measure, seed by seed; the file and what is yielded grow, in this order always.

    Raises OSError when the file cannot be written.
    """
    jobs = [
        (planned, width, scaled, rate, seed)
        for seed in planned.seeds
        for width in planned.widths
        for rate in planned.rates
        for scaled in (True, False)
    ]
    return carry_out_trials(replace(planned, trials=()), jobs, try_out, path, processes)


def try_out(job: tuple[Scaling, int, bool, float, int]) -> Trial:
    """One training, measured before it begins and after each of the plan's steps."""
    planned, width, scaled, rate, seed = job
    config = RunConfig(
        task=TaskConfig(length=planned.length),
        model=ModelConfig(d_model=width, n_heads=planned.heads, n_layers=planned.layers),
        training=replace(
            QUICK,
            learning_rate=rate,
            batch_size=planned.batch,
            seed=seed,
            device="cpu",
            max_steps=planned.steps[-1],
            evaluate_every=planned.steps[-1],
            solved_at=2.0,
        ),
    )
    task, model = config.build_task(), build(config)
    assert isinstance(model, Transformer)
    if not scaled:
        model = MISTAKES[MISTAKE].mistaken(model)
    batch = task.fresh(np.random.default_rng(FRESH), planned.sequences, planned.length)
    let_through = gradient(model, batch)
    training, accuracy = Training(model, config), []
    for step in range(1, planned.steps[-1] + 1):
        training.take_step()
        if step in planned.steps:
            accuracy.append(round(share_right(training.model, batch), 4))
    return Trial(width, scaled, rate, seed, round(let_through, 4), tuple(accuracy))


@torch.no_grad()
def share_right(model: Network, batch: Batch) -> float:
    """The share of the answers' tokens that are right while the right ones are read."""
    model.eval()
    said = model(torch.from_numpy(batch.tokens)).argmax(dim=-1).numpy()
    model.train()
    return float((said == batch.targets)[batch.is_answer].mean())


@torch.no_grad()
def gradient(model: Transformer, batch: Batch) -> float:
    """What softmax lets through, as `Trial.gradient` says, over the queries that see two keys or more."""
    seen = observe(model, torch.from_numpy(batch.tokens))
    patterns = torch.stack([seen[f"{site}.pattern"] for site in seen.attentions()])  # [site, batch, head, query, key]
    keys = torch.arange(1, patterns.shape[-2] + 1, dtype=patterns.dtype)  # causal: so many may be seen
    left = (1 - patterns.square().sum(dim=-1)) / (1 - 1 / keys)
    return float(left[..., 1:].mean())
