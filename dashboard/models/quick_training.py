"""Quick trainings: small models trained while the page waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboard.models.cache import cached
from transformer.analysis.accuracy.result import Accuracy
from transformer.config import RunConfig

if TYPE_CHECKING:
    from transformer.training.quick import Answer as Trained


ANSWER_SEQUENCES = 2048


@dataclass(frozen=True)
class Answer:
    """A small model that was trained on the spot, and how right it is."""

    config: RunConfig
    solved: bool
    steps: int
    seconds: float
    accuracy: Accuracy


def small(config: RunConfig, **changes: object) -> RunConfig:
    """The one-layer version of a run, with some of its model changed. Raises ConfigError when there is none."""
    from transformer.training.quick import small

    return small(config, **changes)


def answer(config: RunConfig, seconds: float, length: int | None = None, sequences: int = ANSWER_SEQUENCES) -> Answer:
    """Train a model now, for at most some seconds, and measure it on fresh sequences of one length."""
    found = _trained(config, seconds)
    return _measured(found, found.steps[-1].seconds, config, length, sequences)


def trained(config: RunConfig, seconds: float) -> Trained:
    """The model itself, with every step that it took; it is kept, and no more than some seconds are spent on it."""
    return _trained(config, seconds)


@cached(64, "Training …")
def _measured(_found: Trained, seconds: float, config: RunConfig, length: int | None, sequences: int) -> Answer:
    """One training is told from the next by the time it took, so that no measurement outlives its model."""
    from transformer.analysis.accuracy.by_position import accuracy_by_position

    task, seed = config.build_task(), config.training.seed + 1
    accuracy = accuracy_by_position(_found.model, task, sequences=sequences, length=length, seed=seed)
    return Answer(config, _found.solved, len(_found.steps), seconds, accuracy)


@cached(16)
def _trained(config: RunConfig, seconds: float) -> Trained:
    from transformer.training.quick import answer

    return answer(config, seconds)
