"""A small model without positional encoding, trained behind the page and asked one thing in two orders."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dashboard.models.cache import cached
from dashboard.models.on_the_spot import quick_training
from dashboard.models.on_the_spot.quick_training import Lesson
from transformer.analysis.accuracy.result import Accuracy
from transformer.config import RunConfig, TaskConfig

STEPS, SEQUENCES = 500, 8192
"""Of the one-layer training, at most; and what its accuracy is measured on."""
POSITIONS = ("none", "learned")
"""What the models have that are asked in two orders."""


@dataclass(frozen=True)
class Turned:
    """What a model says after SEP to a question and to its symbols in another order."""

    positions: str
    question: tuple[int, ...]
    other: tuple[int, ...]
    said: int
    said_other: int
    moved: float
    """The most that a logit differs between the two."""


def small(positions: str) -> RunConfig:
    """One causal layer with one head, for reversals of 8 digits; as many steps as it needs, or STEPS."""
    return _bounded(quick_training.small(RunConfig(), positions=positions))


def so_far(found: Lesson) -> Accuracy | None:
    """How right one is on fresh sequences, as far as it is; None before its first step."""
    answer = quick_training.shown(found, sequences=SEQUENCES)
    return None if answer is None else answer.accuracy


def turned(positions: str, question: tuple[int, ...], other: tuple[int, ...]) -> Turned:
    """Ask the small model with these positions, or with none, for the first symbol of both answers."""
    return _asked_in_two_orders(small(positions), question, other)


@cached(8)
def _asked_in_two_orders(config: RunConfig, question: tuple[int, ...], other: tuple[int, ...]) -> Turned:
    import torch

    model, separator = quick_training.trained(config).model, config.build_task().separator
    with torch.no_grad():
        logits = model(torch.tensor([[*question, separator], [*other, separator]]))[:, -1].numpy()
    said, moved = logits.argmax(axis=-1), float(np.abs(logits[0] - logits[1]).max())
    return Turned(config.model.positions, question, other, int(said[0]), int(said[1]), moved)


def carried(question: tuple[int, ...], order: tuple[int, ...]) -> float:
    """How far permuting the question is from permuting the output: the largest |f(x∘π) − f(x)∘π| over all logits.

    Of the small model without positions that reverses in place, where every query sees every key.
    """
    return _carried(aligned(), question, order)


@cached(4)
def _carried(config: RunConfig, question: tuple[int, ...], order: tuple[int, ...]) -> float:
    import torch

    model = quick_training.trained(config).model
    x, permuted = torch.tensor([question]), list(order)
    with torch.no_grad():
        return float((model(x[:, permuted]) - model(x)[:, permuted]).abs().max())


def all_of() -> list[RunConfig]:
    """The three small models: those that are asked in two orders, and the one that reverses in place."""
    return [*(small(positions) for positions in POSITIONS), aligned()]


def aligned() -> RunConfig:
    """One layer without positions that reverses in place and sees everything."""
    return _bounded(quick_training.small(RunConfig(task=TaskConfig(task="reverse-aligned")), positions="none"))


def _bounded(config: RunConfig) -> RunConfig:
    return replace(config, training=replace(config.training, max_steps=STEPS, evaluate_every=25))
