"""What several pages ask about a model's positional encoding; cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.cache import cached
from dashboard.models.model import Model

if TYPE_CHECKING:
    from transformer.analysis.encodings import Addition, Bias, FittedShift, Lengths, Reversal, Table, TwoOrders
    from transformer.tasks import Question


@cached(32)
def table(model: Model, name: str) -> Table:
    """A model's encoding, or another one of the same sizes."""
    from transformer.analysis.encodings import table_of

    return table_of(model.transformer(), name)


@cached(32)
def bias(model: Model, name: str) -> Bias | None:
    """What a model's encoding, or another one of the same sizes, adds to the scores of each head, if it does."""
    from transformer.analysis.encodings import bias_of

    return bias_of(model.transformer(), name)


@cached(64, "Fitting a linear map …")
def fitted(model: Model, name: str, length: int, steps: int) -> FittedShift:
    """The linear map nearest to a step, over the first positions of a table."""
    from transformer.analysis.encodings import fit_shift

    return fit_shift(table(model, name).values[:length], steps)


@cached(32)
def lengths(model: Model, name: str) -> Lengths:
    """The norms of token embeddings and of what is added to them."""
    from transformer.analysis.encodings import lengths_of

    return lengths_of(model.transformer(), name)


@cached(64)
def addition(model: Model, name: str, token: int, place: int) -> Addition | None:
    """A token's vector, that of its place, and their sum; None where nothing is added."""
    from transformer.analysis.encodings import addition_of

    return addition_of(model.transformer(), name, token, place)


@cached(32)
def reversal(model: Model, question: Question, *, everything_seen: bool) -> Reversal:
    """A question and its right answer, read both ways by the model without its positions."""
    import torch

    from transformer.analysis.encodings import read_backwards

    batch = model.task.encode([question])
    source = None if batch.source is None else torch.from_numpy(batch.source[0])
    return read_backwards(
        model.transformer(), torch.from_numpy(batch.tokens[0]), source, everything_seen=everything_seen
    )


@cached(32)
def two_orders(model: Model, question: Question) -> tuple[TwoOrders, tuple[str, ...]]:
    """A question in two orders, read by the model's first attention, and the names of its tokens.

    It is what is read before the first token of the answer is said: of a law with a separator, up to that.
    """
    import torch

    from transformer.analysis.encodings import read_in_two_orders

    batch, task = model.task.encode([question]), model.task
    source = None if batch.source is None else torch.from_numpy(batch.source[0])
    tokens = batch.tokens[0]
    ends = np.flatnonzero(tokens == task.separator) if task.lawful else np.array([], dtype=int)
    tokens = tokens[: ends[0] + 1] if len(ends) else tokens
    found = read_in_two_orders(model.transformer(), torch.from_numpy(tokens), source)
    return found, tuple(task.vocabulary[token] for token in (tokens if batch.source is None else batch.source[0]))
