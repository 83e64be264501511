"""Train on short inputs, measure on longer ones, once for each positional encoding and seed.

A file is written after every training, so that whoever looks sees how far it is, and what is cut off is not lost.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from transformer.analysis.accuracy.by_position import accuracy_by_position
from transformer.config import RunConfig, TaskConfig, TrainingConfig
from transformer.experiments.lengths import SEEDS, Fall, Lengths, Trial, in_order
from transformer.experiments.trials import carry_out_trials
from transformer.model import Transformer, build, stretched
from transformer.tasks import Task
from transformer.training.loop import Training
from transformer.training.recording import details

STEPS = 500
SEQUENCES = 256
TIMES = 3
"""Measured up to so many times the length that was trained on."""


def plan(length: int = 8, steps: int = STEPS, seeds: tuple[int, ...] = SEEDS) -> Lengths:
    """What will be trained: reversals of 1 to `length` symbols, as many steps for each, never stopped early."""
    config = RunConfig(
        task=TaskConfig(min_length=1, length=length),
        training=TrainingConfig(
            device="cpu",
            max_steps=steps,
            learning_rate=5e-3,
            batch_size=64,
            decay_after=max(1, steps // 3),
            solved_at=2.0,
            evaluate_every=steps,
        ),
    )
    return Lengths(config, in_order(), seeds, TIMES * length, SEQUENCES, **details(torch.device("cpu")))


def carry_out(planned: Lengths, path: Path, processes: int = 1) -> Iterator[Lengths]:
    """Train and measure, each seed with all encodings; the file and what is yielded grow, in this order always.

    Raises TrainingError when a loss is no longer a number, and OSError when the file cannot be written.
    """
    jobs = [(planned, positions, seed) for seed in planned.seeds for positions in planned.encodings]
    return carry_out_trials(replace(planned, trials=()), jobs, try_out, path, processes)


def try_out(job: tuple[Lengths, str, int]) -> Trial:
    """One training, with these positions and this seed, and its counts at every length."""
    planned, positions, seed = job
    shared = planned.config
    config = replace(
        shared,
        model=replace(shared.model, positions=positions),
        training=replace(shared.training, seed=seed),
    )
    training = Training(build(config), config)
    steps = []
    while not training.done:
        steps.append(training.take_step())
    model = training.model.eval()
    assert isinstance(model, Transformer)
    exact, right = measure(model, config.build_task(), planned.longest, sequences=planned.sequences, seed=seed + 1)
    last = steps[-1]
    return Trial(positions, seed, last.loss, round(last.seconds, 2), exact, right, Fall.of([s.loss for s in steps]))


def measure(
    model: Transformer, task: Task, longest: int, *, sequences: int, seed: int
) -> tuple[tuple[int | None, ...], tuple[tuple[int, ...] | None, ...]]:
    """Whole answers right, and answers right place by place, at each length from 1 to `longest`, as counts.

    The model reads the right tokens so far; an answer is right as a whole exactly when it is when nobody helps. None
    where the model has no vector for one of the positions.
    """
    widths = [len(task.target_names(length)) for length in range(1, longest + 1)]
    with contextlib.suppress(ValueError):  # whose sentence says why it stays as short as it is
        model = stretched(model, max(model.n_ctx, widths[-1]))
    exact: list[int | None] = []
    right: list[tuple[int, ...] | None] = []
    for length, width in enumerate(widths, 1):
        if width > model.n_ctx:
            exact.append(None)
            right.append(None)
            continue
        found = accuracy_by_position(model, task, sequences=sequences, length=length, seed=seed)
        answer = np.array([name.startswith("y") for name in found.names])
        exact.append(found.exact)
        right.append(tuple(int(count) for count in found.correct[answer]))
    return tuple(exact), tuple(right)
