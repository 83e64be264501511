"""The bottleneck, measured: what three finished runs say by themselves at every length, in one file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from transformer import checkpoints
from transformer.analysis.accuracy.by_position import EVALUATION_STREAM
from transformer.analysis.sample import say_each
from transformer.experiments.bottleneck import KINDS, Bottleneck, BottleneckError, Contestant, kind_of
from transformer.network import Network
from transformer.tasks import Task
from transformer.training.recording import details
from transformer.training.runs import Run

SEQUENCES = 1024
"""Fresh sequences a length."""


def compare(runs: Sequence[Run], sequences: int = SEQUENCES) -> Bottleneck:
    """Measure three trained runs, one of each kind, on one task.

    Raises BottleneckError, RunError or CheckpointError, with a sentence, when they are not that.
    """
    by_kind = {kind_of(run.config): run for run in runs}
    if set(by_kind) != set(KINDS) or len(runs) != len(KINDS) or len({run.config.task for run in runs}) > 1:
        raise BottleneckError(
            "three runs on one task are compared: a GRU without attention, one with it, and a transformer"
        )
    contestants = tuple(contestant(by_kind[kind], sequences) for kind in KINDS)
    return Bottleneck(contestants, sequences, **details(torch.device("cpu")))


def contestant(run: Run, sequences: int = SEQUENCES) -> Contestant:
    """One run's last weights, measured at every length of its task."""
    model, config = checkpoints.load(run.snapshot())
    exact, right = measure(model, config.build_task(), sequences=sequences, seed=config.training.seed + 1)
    seconds = (run.metrics() or [{}])[-1].get("seconds", 0.0)
    parameters = sum(weight.numel() for weight in model.parameters())
    return Contestant(run.name, run.digest(), config, parameters, round(seconds, 1), exact, right)


def measure(
    model: Network, task: Task, *, sequences: int, seed: int
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Whole answers right, and answers right place by place, at each of the task's lengths, as counts.

    Nobody helps: each token is chosen after those that the model said itself.
    """
    exact, right = [], []
    for length in task.lengths:
        rng = np.random.default_rng([seed, EVALUATION_STREAM, length])
        questions = rng.integers(0, task.symbols, (sequences, length))
        wanted = np.stack([task.answer(question) for question in questions])
        correct = say_each(model, task, questions) == wanted
        exact.append(int(correct.all(axis=1).sum()))
        right.append(tuple(int(count) for count in correct.sum(axis=0)))
    return tuple(exact), tuple(right)
