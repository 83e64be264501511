"""Accuracy by position: how often each target is right over many fresh sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.analysis.accuracy.result import Accuracy
from transformer.edits import Edit
from transformer.foundation.interruption import go_on
from transformer.network import Network
from transformer.observation import observe, tensors
from transformer.tasks import Batch, Task
from transformer.trace import only

EVALUATION_STREAM = 1
"""Sequences for measuring come from another stream of a seed than those for training (0)."""
CHUNK = 1024
"""Sequences that are looked at together, at most."""
CELLS = 2**22
"""Cells of one head's patterns, or logits, that are held together, at most: long sequences go in smaller chunks.

Larger tensors, from 32 MB on, come from the system anew each time, page by page: that takes longer than it saves.
"""


def logits(
    model: Network, batch: Batch, edits: Sequence[Edit] = ()
) -> Iterator[Float[Tensor, "chunk position d_vocab"]]:
    """What a model says to each of many sequences, chunk by chunk, given the true tokens (teacher forcing).

    Raises Interrupted between two chunks where nobody wants the rest.

    A recurrent network gets no such help once it is trained: it reads what it says itself, under edits too.
    """
    width = batch.tokens.shape[1]
    chunk = max(1, min(CHUNK, CELLS // (width * max(width * model.config.cell, model.d_vocab))))
    for start in range(0, len(batch.tokens), chunk):
        go_on()
        tokens, source = tensors(model, batch.part(slice(start, start + chunk)))
        if model.config.recurrent and source is not None:
            tokens = _own_words(model, tokens, source, edits)
        yield _look(model, tokens, source, edits)


def predictions(model: Network, batch: Batch, edits: Sequence[Edit] = ()) -> Int[np.ndarray, "batch position"]:
    """The likeliest token at each position, given what `logits` says is read before it."""
    return np.concatenate([said.argmax(dim=-1).cpu().numpy() for said in logits(model, batch, edits)])


@torch.no_grad()
def _look(
    model: Network,
    tokens: Int[Tensor, "chunk position"],
    source: Int[Tensor, "chunk source"] | None,
    edits: Sequence[Edit],
) -> Float[Tensor, "chunk position d_vocab"]:
    if not edits:
        return model(tokens, source)
    return observe(model, tokens, edits, source=source, remember=only()).logits


def _own_words(
    model: Network, tokens: Int[Tensor, "chunk position"], source: Int[Tensor, "chunk source"], edits: Sequence[Edit]
) -> Int[Tensor, "chunk position"]:
    """The first token, and then what the model itself says after each: what it reads while nobody helps.

    Under edits each pass reads the whole width, so that an edit made for that width fits; what stands further on
    cannot reach back.
    """
    if not edits:
        said = model.greedy(source, int(tokens[0, 0]), tokens.shape[1])
        return torch.cat([tokens[:, :1], said[:, :-1]], dim=1)
    own = tokens.clone()
    for place in range(1, own.shape[1]):
        own[:, place] = _look(model, own, source, edits)[:, place - 1].argmax(dim=-1)
    return own


def accuracy_by_position(
    model: Network,
    task: Task,
    *,
    sequences: int = 4096,
    length: int | None = None,
    seed: int = 0,
    edits: Sequence[Edit] = (),
) -> Accuracy:
    """Measure on fresh sequences of one length (the longest unless said). The model must be in evaluation mode."""
    length = task.length if length is None else length
    batch = task.fresh(np.random.default_rng([seed, EVALUATION_STREAM]), sequences, length)
    right = predictions(model, batch, edits) == batch.targets
    return Accuracy(
        correct=right.sum(axis=0),
        sequences=len(right),
        names=task.target_names(length),
        groups=task.groups(length),
        chance=task.chance,
        exact=int((right | ~batch.is_answer).all(axis=1).sum()),
    )
