"""Sinusoidal positions: fixed waves ("Attention Is All You Need", section 3.5)."""

from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.positions import BASE, PositionalEncoding, Told, angles


def sinusoids(places: Int[Tensor, "position"], width: int, base: float = BASE) -> Float[Tensor, "position dimension"]:
    """The waves themselves, float64: in dimension 2i the sine of a pair's angle, in 2i + 1 its cosine."""
    angle = angles(places, width, base)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


class Sinusoidal(PositionalEncoding):
    """Pairs of sine and cosine, wavelengths from 2π to nearly 2π · base: a shift of positions turns each pair."""

    title: ClassVar[str] = "sinusoidal"
    told: ClassVar[Told] = "vectors"
    does: ClassVar[str] = "adds a fixed vector of sines and cosines to the token at each position"
    description: ClassVar[str] = "fixed waves, added to the embeddings; neighbours look alike"
    formula: ClassVar[str] = r"PE_{p,2i}=\sin\frac{p}{b^{2i/d}},\quad PE_{p,2i+1}=\cos\frac{p}{b^{2i/d}}"
    pairs = "d_model"
    pairing: ClassVar[str] = "positions pair sines with cosines"
    decay_after: ClassVar[int] = 40
    table: Tensor

    def __init__(self, *, n_ctx: int, d_model: int, n_heads: int) -> None:
        super().__init__(n_ctx=n_ctx, d_model=d_model, n_heads=n_heads)
        self.register_buffer("table", sinusoids(torch.arange(n_ctx), d_model).float(), persistent=False)

    def vectors(self, length: int):
        return self.table[:length]

    def at(self, places):
        return self.laid_out(places, table=sinusoids(places, self.d_model).to(self.table))
