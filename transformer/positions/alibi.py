"""ALiBi: a penalty that grows with the distance ("Train Short, Test Long", Press et al., 2022, section 3)."""

from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.positions import PositionalEncoding, Told


def slopes(n_heads: int) -> Float[Tensor, "head"]:
    """What a step of distance costs in each head, float64: 2^(-8/H), and each next head that much less.

    The paper's formula, for any H. The authors' code differs where H is no power of two: it takes the slopes of the
    next lower power of two, and adds every other slope of twice that many heads.
    """
    return 2.0 ** (-8.0 * torch.arange(1, n_heads + 1, dtype=torch.float64) / n_heads)


def penalties(places: Int[Tensor, "position"], n_heads: int) -> Float[Tensor, "head query key"]:
    """What is added to each head's scores, float64, on the CPU: minus slope times distance, on both sides."""
    place = places.cpu().double()
    return -slopes(n_heads)[:, None, None] * (place[:, None] - place[None, :]).abs()


class ALiBi(PositionalEncoding):
    """Each head subtracts slope × distance from its scores. The distance is taken on both sides, for encoders too."""

    title: ClassVar[str] = "ALiBi"
    told: ClassVar[Told] = "bias"
    does: ClassVar[str] = "subtracts from a score a penalty that grows with the distance of query and key"
    description: ClassVar[str] = "a penalty on the scores that grows with the distance, steeper in some heads"
    formula: ClassVar[str] = r"s_{qk} \leftarrow s_{qk} - m_h\,|q-k|,\quad m_h = 2^{-8(h+1)/H}"
    term: ClassVar[str] = "− m · distance"
    table: Tensor

    def __init__(self, *, n_ctx: int, d_model: int, n_heads: int) -> None:
        super().__init__(n_ctx=n_ctx, d_model=d_model, n_heads=n_heads)
        self.register_buffer("table", penalties(torch.arange(n_ctx), n_heads).float(), persistent=False)

    def bias(self, n_query: int, n_key: int):
        return self.table[:, :n_query, :n_key]

    def at(self, places):
        return self.laid_out(places, table=penalties(places, self.n_heads).to(self.table))

    def picture(self, length: int):
        """What each head subtracts at each distance."""
        return self.table[:, 0, :length].T, "head (penalty at this distance)"
