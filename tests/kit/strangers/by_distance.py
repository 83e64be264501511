"""A learned bias by distance, as in "Exploring the Limits of Transfer Learning" (Raffel et al., 2020), without bins."""

from typing import ClassVar

import torch
from torch import nn

from transformer.positions import PositionalEncoding, Told


class ByDistance(PositionalEncoding):
    """One weight a head and signed distance, added to the scores."""

    title: ClassVar[str] = "relative"
    told: ClassVar[Told] = "bias"
    does: ClassVar[str] = "adds a weight of its own for each distance to a score"
    description: ClassVar[str] = "a learned bias on the scores, one weight for each head and distance"
    formula: ClassVar[str] = r"s_{qk} \leftarrow s_{qk} + w_{h,\,q-k}"
    learned: ClassVar[bool] = True
    term: ClassVar[str] = "+ w(distance)"

    def __init__(self, *, n_ctx: int, d_model: int, n_heads: int) -> None:
        super().__init__(n_ctx=n_ctx, d_model=d_model, n_heads=n_heads)
        self.weights = nn.Parameter(0.3 * torch.randn(n_heads, 2 * n_ctx - 1))

    def bias(self, n_query: int, n_key: int):
        apart = torch.arange(n_query)[:, None] - torch.arange(n_key)[None, :]
        return self.weights[:, apart + self.n_ctx - 1]
