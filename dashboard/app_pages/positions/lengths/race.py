"""The race of positional encodings: one small training each, at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dashboard.app_pages.positions.lengths.measurement import called, still_falling
from dashboard.figures.kit.numbers import share_text
from dashboard.models import background
from dashboard.models.on_the_spot.quick_training import Lesson
from dashboard.parts import waiting
from transformer.config import ModelConfig, RunConfig, TrainingConfig
from transformer.experiments.lengths import Fall
from transformer.foundation.claims import claim

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
    fall: Fall | None = None
    """How its loss fell at the end, as far as it is; None after too few steps."""


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
    judged = np.array(task.groups(task.length)) == task.part
    taken = list(found.steps)  # more may come at any moment
    measured = [(step.step, float(step.accuracy[judged].mean())) for step in taken if step.accuracy is not None]
    steps, shares = zip(*measured, strict=True) if measured else ((), ())
    fall = Fall.of([step.loss for step in taken])
    return Racer(positions, steps, shares, bool(taken) and taken[-1].solved, fall)


def raced_name(racer: Racer) -> str:
    """An encoding, and what became of it."""
    end = f"✓ step {racer.steps[-1]}" if racer.solved else share_text(racer.shares[-1])
    return f"{called(racer.positions)} {end}"


@claim
def race_sentence(racers: list[Racer]) -> str:
    """Who solved it, and how far the others came."""
    solved = sorted((each for each in racers if each.solved), key=lambda each: each.steps[-1])
    others = [each for each in racers if not each.solved]
    first = ", ".join(f"{called(each.positions)} at step {each.steps[-1]}" for each in solved)
    rest = ", ".join(
        f"{called(each.positions)} {share_text(each.shares[-1])} after {each.steps[-1]}" for each in others
    )
    words = [f"Solved: {first}." if solved else "No encoding solves it."]
    if others:
        words.append(f"Not solved: {rest} steps.")
        still = [called(each.positions) for each in others if each.fall and each.fall.falling]
        if still or all(each.fall for each in others):  # of a training that broke off nobody knows
            words.append(still_falling(still, RACE_STEPS))
    return " ".join(words)
