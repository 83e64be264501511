"""Positional encodings as tables: what is drawn of them, and how alike positions are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from transformer.model import Transformer
from transformer.positions import ENCODINGS


@dataclass(frozen=True)
class Table:
    """One row a position."""

    values: Float[np.ndarray, "position dimension"]
    columns: str
    """What the columns are, in words."""
    short: str
    """What one column is called."""
    note: str
    """What a reader must know about where the numbers come from; empty when they are the model's own."""


def table_of(model: Transformer, name: str) -> Table:
    """The encoding of a model, or another one of the same sizes: fixed ones by formula, a learned one as it starts.

    Heads of an odd width are made one wider for another one: some encodings turn pairs of dimensions.
    """
    own = name == model.config.positions
    if own:
        encoding = model.positions
    else:
        sizes = model.config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            encoding = ENCODINGS[name](
                n_ctx=model.n_ctx, d_model=sizes.n_heads * (sizes.d_head + sizes.d_head % 2), n_heads=sizes.n_heads
            )
    values, columns = encoding.picture(model.n_ctx)
    note = ""
    if not own and any(True for _ in encoding.parameters()):
        note = "Not this model's: untrained, as it is drawn before the first step."
    return Table(values.detach().cpu().numpy(), columns, columns.split(" ")[0], note)


def similarity(table: Float[np.ndarray, "position dimension"]) -> Float[np.ndarray, "position position"]:
    """PE · PEᵀ: the inner product of every two positions."""
    return table @ table.T
