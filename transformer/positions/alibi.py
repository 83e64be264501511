"""ALiBi: a penalty that grows with the distance ("Train Short, Test Long", Press et al., 2022, section 3)."""

from typing import ClassVar

import torch
from torch import Tensor

from transformer.positions import PositionalEncoding


class ALiBi(PositionalEncoding):
    """Each head subtracts slope × distance from its scores. The distance is taken on both sides, for encoders too."""

    description: ClassVar[str] = "a penalty on the scores that grows with the distance, steeper in some heads"
    formula: ClassVar[str] = r"s_{qk} \leftarrow s_{qk} - m_h\,|q-k|,\quad m_h = 2^{-8(h+1)/H}"
    table: Tensor

    def __init__(self, *, n_ctx: int, d_model: int, n_heads: int) -> None:
        super().__init__(n_ctx=n_ctx, d_model=d_model, n_heads=n_heads)
        self.register_buffer("table", self._penalties(torch.arange(n_ctx)).float(), persistent=False)

    def bias(self, n_query: int, n_key: int):
        return self.table[:, :n_query, :n_key]

    def at(self, places):
        return self.laid_out(places, table=self._penalties(places).to(self.table))

    def _penalties(self, places):
        """−slope × distance, [head, query, key]."""
        head = torch.arange(1, self.n_heads + 1, dtype=torch.float64, device=places.device)
        place = places.double()
        return -(2.0 ** (-8.0 * head / self.n_heads))[:, None, None] * (place[:, None] - place[None, :]).abs()

    def picture(self, length: int):
        """What each head subtracts at each distance."""
        return self.table[:, 0, :length].T, "head (penalty at this distance)"
