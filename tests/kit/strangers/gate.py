"""A gate on the scores: late queries and late keys meet more loudly. One learned number a head; nobody has used it."""

from typing import ClassVar

import torch
from torch import nn

from transformer.positions import PositionalEncoding, Told


class Gate(PositionalEncoding):
    """Queries and keys are scaled by their position, so that each score is multiplied by a gate of both."""

    title: ClassVar[str] = "gated"
    told: ClassVar[Told] = "rotation"
    does: ClassVar[str] = "scales its queries and keys by a learned gate of their position"
    description: ClassVar[str] = "queries and keys scaled by a learned gate of their position"
    learned: ClassVar[bool] = True

    def __init__(self, *, n_ctx: int, d_model: int, n_heads: int) -> None:
        super().__init__(n_ctx=n_ctx, d_model=d_model, n_heads=n_heads)
        self.slope = nn.Parameter(torch.full((), 0.5))

    def rotate(self, x):
        place = torch.arange(x.shape[-2], device=x.device, dtype=x.dtype)[:, None]
        return x * (1 + self.slope * place / self.n_ctx)
