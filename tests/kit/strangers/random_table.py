"""A fixed table of random vectors: no formula, and nothing to learn."""

from typing import ClassVar

import torch

from transformer.positions import PositionalEncoding, Told


class RandomTable(PositionalEncoding):
    """One vector a position, drawn once and never moved. It is stored: no formula brings it back."""

    title: ClassVar[str] = "random"
    told: ClassVar[Told] = "vectors"
    does: ClassVar[str] = "adds a vector that was drawn once to the token at each position"
    description: ClassVar[str] = "one vector for each position, drawn once and never trained"
    drawn: torch.Tensor

    def __init__(self, *, n_ctx: int, d_model: int, n_heads: int) -> None:
        super().__init__(n_ctx=n_ctx, d_model=d_model, n_heads=n_heads)
        self.register_buffer("drawn", torch.randn(n_ctx, d_model))

    def vectors(self, length: int):
        return self.drawn[:length]
