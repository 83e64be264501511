"""Learned positions: one vector of weights a position ("Attention Is All You Need", section 3.5, row E of table 3)."""

from typing import ClassVar

import torch
from torch import nn

from transformer.positions import PlaceError, PositionalEncoding, Told


class Learned(PositionalEncoding):
    """A table of parameters, drawn from N(0, 1): at the start no two positions look alike."""

    title: ClassVar[str] = "learned"
    told: ClassVar[Told] = "vectors"
    does: ClassVar[str] = "adds row p of a table of weights to the token at position p"
    description: ClassVar[str] = "one vector of weights for each position, added to the embeddings"
    formula: ClassVar[str] = r"PE_p = W_{p},\quad W\ \text{a table of weights}"
    learned: ClassVar[bool] = True

    def __init__(self, *, n_ctx: int, d_model: int, n_heads: int) -> None:
        super().__init__(n_ctx=n_ctx, d_model=d_model, n_heads=n_heads)
        self.table = nn.Parameter(torch.randn(n_ctx, d_model))

    def vectors(self, length: int):
        return self.table[:length]

    def at(self, places):
        low, high = int(places.min()), int(places.max())
        if low < 0 or high >= self.n_ctx:
            raise PlaceError(
                f"a learned table has no position {(low if low < 0 else high) + 1}: it ends at 1 and at {self.n_ctx}"
            )
        return self.laid_out(places, table=self.table[places])
