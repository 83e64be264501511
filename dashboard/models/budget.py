"""How much may be measured at once: limits in cells, logits and operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transformer.config import ModelConfig

if TYPE_CHECKING:
    from transformer.tasks import Task


OPERATIONS = 2e11
"""Floating-point operations for which somebody may be kept waiting: seconds on two cores."""
FINEST, MOST_BLOCKS = 128, 48
"""Tokens that stand side by side, each by itself; of more, so many blocks, wide enough to be hovered and named."""


def passes(config: ModelConfig, symbols: int, slots: int) -> float:
    """How many passes over so many slots can be made within OPERATIONS.

    A pass costs two operations a weight and token, and four a number of a stream that a query reads from a key.
    """
    d, blocks = config.d_model, config.n_layers * (2 if config.architecture == "encoder-decoder" else 1)
    weights = blocks * (24 * d * d if config.recurrent else 4 * d * d + 2 * d * config.d_ff) + d * symbols
    return OPERATIONS / (2 * weights * slots + 4 * blocks * d * slots**2)


ACCURACY_CELLS, SURVEY_CELLS, LOGITS = 2**24, 2**22, 2**25
"""Cells of one head's patterns for an accuracy and for a survey, and logits for either, while somebody waits."""


def affordable(sequences: int, task: Task, length: int, cells: int) -> int:
    """So many sequences, or as many as have so many cells, and no more than LOGITS; some, in any case."""
    targets = len(task.target_names(length))
    return max(8, min(sequences, cells // targets**2, LOGITS // (targets * task.d_vocab)))
