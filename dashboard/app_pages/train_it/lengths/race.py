"""The race of positional encodings: one small training each, at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dashboard.models import background
from dashboard.models.quick_training import Lesson
from dashboard.parts import waiting
from transformer.config import ModelConfig, RunConfig, TrainingConfig

RACE_STEPS = 600
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


def race(encodings: Sequence[str]) -> list[Lesson]:
    """All of them, one after the other behind the page."""
    return [waiting.lesson(f"race-{each}", racing(each), background.TRAININGS) for each in encodings]


def so_far(positions: str, found: Lesson) -> Racer:
    """How far one is."""
    task = found.config.build_task()
    half = np.array(task.groups(task.length)) == "second half"
    taken = list(found.steps)  # more may come at any moment
    measured = [(step.step, float(step.accuracy[half].mean())) for step in taken if step.accuracy is not None]
    steps, shares = zip(*measured, strict=True) if measured else ((), ())
    return Racer(positions, steps, shares, bool(taken) and taken[-1].solved)
