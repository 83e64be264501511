"""A rotation of the first half of each head's dimensions only, as in GPT-NeoX (Black et al., 2022, section 2.1)."""

from typing import ClassVar

import torch

from transformer.positions import PositionalEncoding, Told, angles


class HalfTurned(PositionalEncoding):
    """The first half of a head's dimensions is turned by the position, pair by pair; the others stay."""

    title: ClassVar[str] = "half-turned"
    told: ClassVar[Told] = "rotation"
    does: ClassVar[str] = "turns the first half of its queries and keys by their position"
    description: ClassVar[str] = "half of each query and key turned by its position"
    formula: ClassVar[str] = r"q_p' = \left[R(p\,\theta)\,q_p^{(1)};\ q_p^{(2)}\right]"

    def __init__(self, *, n_ctx: int, d_model: int, n_heads: int) -> None:
        super().__init__(n_ctx=n_ctx, d_model=d_model, n_heads=n_heads)
        self.turning = 2 * (self.d_head // 4)
        self.register_buffer("turns", self.complex(torch.arange(n_ctx)), persistent=False)

    def complex(self, places):
        angle = angles(places, max(self.turning, 2))[:, : self.turning // 2]
        return torch.stack([angle.cos(), angle.sin()], dim=-1).float()

    def rotate(self, x):
        cos, sin = self.turns[: x.shape[-2]].unbind(-1)
        even, odd = x[..., 0 : self.turning : 2], x[..., 1 : self.turning : 2]
        turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
        return torch.cat([turned, x[..., self.turning :]], dim=-1)

    def at(self, places):
        other = self.laid_out(places, turns=self.complex(places).to(self.turns))
        other.turning = self.turning
        return other
