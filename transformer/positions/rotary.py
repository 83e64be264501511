"""Rotary positions: queries and keys turned by their position ("RoFormer", Su et al., 2021, section 3.4)."""

from typing import ClassVar

import torch
from torch import Tensor

from transformer.positions import PositionalEncoding, Told, angles


class Rotary(PositionalEncoding):
    """Each pair of a head's dimensions is turned by position × frequency: scores depend on the distance only.

    A pair is two neighbours (0 and 1, 2 and 3, …), as in the paper. Llama pairs the first half with the second:
    the same but for the order of the dimensions, so weights of one must be reordered for the other.
    """

    title: ClassVar[str] = "rotary"
    told: ClassVar[Told] = "rotation"
    does: ClassVar[str] = "turns its queries and keys by angles that grow with their position"
    description: ClassVar[str] = "queries and keys turned by their position; scores see only distances"
    formula: ClassVar[str] = r"q_p' = R(p\,\theta)\,q_p,\ \ k_p' = R(p\,\theta)\,k_p,\quad \theta_i = b^{-2i/d_{head}}"
    pairs = "d_head"
    pairing: ClassVar[str] = "positions turn pairs of dimensions"
    cos: Tensor
    sin: Tensor

    def __init__(self, *, n_ctx: int, d_model: int, n_heads: int) -> None:
        super().__init__(n_ctx=n_ctx, d_model=d_model, n_heads=n_heads)
        angle = angles(torch.arange(n_ctx), self.d_head)
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    def rotate(self, x):
        length = x.shape[-2]
        cos, sin = self.cos[:length], self.sin[:length]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)

    def at(self, places):
        angle = angles(places, self.d_head)
        return self.laid_out(places, cos=angle.cos().to(self.cos), sin=angle.sin().to(self.sin))

    def picture(self, length: int):
        """The unit vectors (cos, sin) of each pair: what a pair (1, 0) is turned into."""
        turned = torch.stack([self.cos[:length], self.sin[:length]], dim=-1).flatten(1)
        return turned, "dimension of a head (cos, sin of each pair's angle)"
