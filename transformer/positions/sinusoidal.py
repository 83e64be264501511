"""Sinusoidal positions: fixed waves ("Attention Is All You Need", section 3.5)."""

from typing import ClassVar

import torch
from torch import Tensor

from transformer.positions import PositionalEncoding

BASE = 10_000.0
"""What the wavelengths grow by, from the first pair of dimensions to beyond the last."""


class Sinusoidal(PositionalEncoding):
    """Pairs of sine and cosine, wavelengths from 2π to 10000 · 2π: a shift of positions is a rotation of each pair."""

    description: ClassVar[str] = "fixed waves, added to the embeddings; neighbours look alike"
    formula: ClassVar[str] = r"PE_{p,2i}=\sin\frac{p}{10000^{2i/d}},\quad PE_{p,2i+1}=\cos\frac{p}{10000^{2i/d}}"
    table: Tensor

    def __init__(self, *, n_ctx: int, d_model: int, n_heads: int) -> None:
        super().__init__(n_ctx=n_ctx, d_model=d_model, n_heads=n_heads)
        self.register_buffer("table", self._waves(torch.arange(n_ctx)).float(), persistent=False)

    def vectors(self, length: int):
        return self.table[:length]

    def at(self, places):
        return self.laid_out(places, table=self._waves(places).to(self.table))

    def _waves(self, places):
        pair = torch.arange(self.d_model // 2, dtype=torch.float64, device=places.device)[None, :]
        angle = places.double()[:, None] / BASE ** (2 * pair / self.d_model)
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
