"""What several pages ask about a model's positional encoding; cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard.models.cache import cached
from dashboard.models.model import Model

if TYPE_CHECKING:
    from transformer.analysis.encodings import Addition, FittedShift, Lengths, Reversal, Table
    from transformer.tasks import Question


@cached(32)
def table(model: Model, name: str) -> Table:
    """A model's encoding, or another one of the same sizes."""
    from transformer.analysis.encodings import table_of

    return table_of(model.transformer(), name)


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
