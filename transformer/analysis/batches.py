"""Batches of questions for a measurement, in parts that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
from jaxtyping import Bool

from transformer.edits import Edit
from transformer.network import Network
from transformer.observation import Observation, observe, tensors
from transformer.tasks import Batch, Task
from transformer.trace import only

Found = TypeVar("Found")
HELD = 128 * 2**20
"""Bytes that one pass over many sequences may hold; where a single sequence needs more, it goes alone."""
SURVEY_STREAM = 2
"""Sequences for surveys come from another stream of the seed than those of training (0) and measuring (1)."""


def working_attention(task: Task, site: str) -> bool:
    """Is this the kind of attention that can carry the task: to the source where there is one, else to itself?"""
    return site.endswith("cross_attention") if task.has_source else site.endswith("self_attention")


def in_parts(
    model: Network,
    batch: Batch,
    look: Callable[[slice, Observation], Found],
    edits: Sequence[Edit] = (),
    *,
    keep: Sequence[str],
) -> list[Found]:
    """Observe a batch a part at a time, and what `look` finds in each: no more than `HELD` bytes, or what one sequence
    needs, are held at once.

    `keep` names the sites that are recorded: patterns and masks, or none. `look` is called, not handed an iterator's
    next: a loop would still hold one part while it observes another.
    """
    together = max(1, HELD // _bytes_of_one(model, batch, bool(keep)))
    found = []
    for start in range(0, len(batch.tokens), together):
        part = slice(start, start + together)
        tokens, source = tensors(model, batch.part(part))
        found.append(look(part, observe(model, tokens, edits, source=source, remember=only(*keep))))
    return found


@lru_cache(maxsize=2)
def questions(task: Task, sequences: int, length: int, seed: int) -> tuple[Batch, Bool[np.ndarray, "batch query key"]]:
    """What a survey asks, and where each answer stands; kept, for a film asks the same at every step."""
    rng = np.random.default_rng([seed, SURVEY_STREAM])
    drawn = task.draw(rng, sequences, length)
    return task.encode(drawn), np.stack([task.expected_keys(question) for question in drawn])


def _bytes_of_one(model: Network, batch: Batch, patterns: bool) -> int:
    """About what one sequence needs: the patterns that are kept, four more in flight, and a few residual streams."""
    config = model.config
    width = max(batch.tokens.shape[1], 0 if batch.source is None else batch.source.shape[1])
    modules = config.n_layers * (3 if config.architecture == "encoder-decoder" else 1)
    matrices = config.n_heads * width * (4 + (modules if patterns else 0))
    matrices += width * (config.cell - 1)
    return 4 * width * (matrices + 8 * config.d_model + config.d_ff + model.unembedding.out_features)
