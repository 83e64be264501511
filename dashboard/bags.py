"""A small model without positions, trained on the spot and asked one thing in two orders; and the race of encodings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dashboard import answers
from dashboard.keeping import kept
from transformer.analysis.findings import Accuracy
from transformer.config import ModelConfig, RunConfig, TrainingConfig

STEPS, SECONDS, SEQUENCES = 500, 10.0, 2048
"""Of the one-layer training, at most; and what its accuracy is measured on."""
RACE_STEPS, RACE_SECONDS = 300, 20.0
"""Of each encoding in the race, at most."""


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
    config = answers.small(RunConfig(), positions=positions)
    return replace(config, training=replace(config.training, max_steps=STEPS, evaluate_every=25))


def accuracy() -> Accuracy:
    """Of the one without positions, on fresh sequences."""
    return answers.answer(small("none"), SECONDS, sequences=SEQUENCES).accuracy


@kept(8)
def turned(positions: str, question: tuple[int, ...], other: tuple[int, ...]) -> Turned:
    """Ask the small model with these positions, or with none, for the first symbol of both answers."""
    import torch

    config = small(positions)
    model, separator = answers.trained(config, SECONDS).model, config.build_task().separator
    with torch.no_grad():
        logits = model(torch.tensor([[*question, separator], [*other, separator]]))[:, -1].numpy()
    said = logits.argmax(axis=-1)
    return Turned(positions, question, other, int(said[0]), int(said[1]), float(np.abs(logits[0] - logits[1]).max()))


# --- the race


@dataclass(frozen=True)
class Racer:
    """One encoding in the race: when it was measured, and how much of the second half was right."""

    positions: str
    steps: tuple[int, ...]
    shares: tuple[float, ...]
    solved: bool


def racing(positions: str) -> RunConfig:
    """The preset's model, 2 layers of 4 heads on reversals of 8 digits, with these positions, from seed 0."""
    training = TrainingConfig(device="cpu", max_steps=RACE_STEPS)
    return RunConfig(model=ModelConfig(positions=positions), training=training)


def race(encodings: tuple[str, ...]) -> Iterator[Racer]:
    """One after the other: they would only slow each other down."""
    for positions in encodings:
        yield _raced(positions)


@kept(16)
def _raced(positions: str) -> Racer:
    config = racing(positions)
    task, found = config.build_task(), answers.trained(config, RACE_SECONDS)
    half = np.array(task.groups(task.length)) == "second half"
    measured = [(step.step, float(step.accuracy[half].mean())) for step in found.steps if step.accuracy is not None]
    steps, shares = zip(*measured, strict=True)
    return Racer(positions, steps, shares, found.solved)
