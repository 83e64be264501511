"""The race of positional encodings: one small training each, at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dashboard.models import quick_training
from dashboard.models.cache import cached
from transformer.config import ModelConfig, RunConfig, TrainingConfig

RACE_STEPS, RACE_SECONDS = 300, 20.0
"""Of each encoding in the race, at most."""


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


@cached(16)
def _raced(positions: str) -> Racer:
    config = racing(positions)
    task, found = config.build_task(), quick_training.trained(config, RACE_SECONDS)
    half = np.array(task.groups(task.length)) == "second half"
    measured = [(step.step, float(step.accuracy[half].mean())) for step in found.steps if step.accuracy is not None]
    steps, shares = zip(*measured, strict=True)
    return Racer(positions, steps, shares, found.solved)
