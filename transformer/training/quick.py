"""Training as an answer to a click: "and what if it were trained that way?", before the hand has left the mouse."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from transformer.config import RunConfig
from transformer.model import build
from transformer.network import Network
from transformer.presets import ONE_LAYER, QUICK
from transformer.training.loop import Step, Training

_ONE_AT_A_TIME = threading.Lock()
"""Two trainings in one process would each take twice as long."""


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
    training = replace(QUICK, seed=config.training.seed, device="cpu", max_steps=2000)
    return RunConfig(task=config.task, model=replace(ONE_LAYER, **(kept | model)), training=training)


def answer(config: RunConfig, seconds: float) -> Answer:
    """Train within this interaction, on the CPU, until it is solved or about `seconds` of training are over.

    Raises TrainingError when the loss is no longer a number. Not for large models: a step is never interrupted.
    """
    with _ONE_AT_A_TIME:
        training = Training(build(config), config)
        steps = [training.take_step()]
        while not training.done and training.seconds < seconds:
            steps.append(training.take_step())
        if steps[-1].accuracy is None:
            accuracy, probed, _ = training.measure()
            steps[-1] = replace(steps[-1], accuracy=accuracy, probed=probed)
    training.model.eval()
    return Answer(config, training.model, tuple(steps))
