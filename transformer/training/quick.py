"""Training as an answer to a click: "and what if it were trained that way?", before the hand has left the mouse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from transformer.config import RunConfig
from transformer.model import build
from transformer.network import Network
from transformer.presets import ONE_LAYER, QUICK
from transformer.training.loop import Step, Training

MOST_STEPS = 2000
"""Of such a training, unless more are asked for: with one layer most tasks are solved within a hundred."""


@dataclass(frozen=True)
class Answer:
    """A model that was trained on the spot."""

    config: RunConfig
    model: Network
    steps: tuple[Step, ...]

    @property
    def solved(self) -> bool:
        return self.steps[-1].solved


def small(config: RunConfig, **model: object) -> RunConfig:
    """The one-layer version of a run: its task, mask, positions and architecture, with a single head and no more."""
    kept: dict[str, Any] = {name: getattr(config.model, name) for name in ("architecture", "mask", "positions")}
    training = replace(QUICK, seed=config.training.seed, device="cpu", max_steps=MOST_STEPS)
    return RunConfig(task=config.task, model=replace(ONE_LAYER, **(kept | model)), training=training)


def answer(
    config: RunConfig, go_on: Callable[[Step], bool] = lambda step: True, training: Training | None = None
) -> Answer:
    """Train on the CPU until it is solved or its steps are taken, so that the clock has no say in what comes out.

    `go_on` is told of each step, and may break it off. `training` is one that was begun, where the model is not the
    config's own. Raises TrainingError when the loss is no longer a number.
    """
    training, steps = training or Training(build(config), config), []
    while not training.done:
        steps.append(training.take_step())
        if not go_on(steps[-1]):
            break
    training.model.eval()
    return Answer(config, training.model, tuple(steps))
