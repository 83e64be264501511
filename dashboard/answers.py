"""Small models that are trained on the spot: the answer to "and what if it were trained that way?"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboard.keeping import kept
from transformer.analysis.findings import Accuracy
from transformer.config import RunConfig

if TYPE_CHECKING:
    from transformer.training.answers import Answer as Trained

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
    from transformer.training.answers import small

    return small(config, **changes)


def answer(config: RunConfig, seconds: float, length: int | None = None, sequences: int = ANSWER_SEQUENCES) -> Answer:
    """Train a model now, for at most some seconds, and measure it on fresh sequences of one length."""
    return _measured(config, seconds, length, sequences)


def trained(config: RunConfig, seconds: float) -> Trained:
    """The model itself, with every step that it took; it is kept, and no more than some seconds are spent on it."""
    return _trained(config, seconds)


@kept(64, "Training …")
def _measured(config: RunConfig, seconds: float, length: int | None, sequences: int) -> Answer:
    from transformer.analysis.accuracy import accuracy_by_position

    found, seed = _trained(config, seconds), config.training.seed + 1
    accuracy = accuracy_by_position(found.model, config.build_task(), sequences=sequences, length=length, seed=seed)
    return Answer(config, found.solved, len(found.steps), found.steps[-1].seconds, accuracy)


@kept(16)
def _trained(config: RunConfig, seconds: float) -> Trained:
    from transformer.training.answers import answer

    return answer(config, seconds)
