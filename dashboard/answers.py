"""Small models that are trained on the spot: the answer to "and what if it were trained that way?"."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from transformer.analysis.findings import Accuracy
from transformer.config import RunConfig

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


@st.cache_resource(max_entries=64, show_spinner="Training …")
def answer(config: RunConfig, seconds: float) -> Answer:
    """Train a model now, for at most some seconds, and measure it."""
    from transformer.analysis.accuracy import accuracy_by_position
    from transformer.training.answers import answer

    found, task = answer(config, seconds), config.build_task()
    accuracy = accuracy_by_position(found.model, task, sequences=ANSWER_SEQUENCES, seed=config.training.seed + 1)
    return Answer(config, found.solved, len(found.steps), found.steps[-1].seconds, accuracy)
