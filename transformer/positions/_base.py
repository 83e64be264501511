"""What every positional encoding is: a module that acts in one of three ways.

Vectors added to the embeddings, a rotation of queries and keys, or a bias on the scores. Fixed encodings are buffers,
not parameters. `at` tells the tokens that they stand elsewhere.
"""

from __future__ import annotations

from itertools import chain

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.foundation.checks import UserError
from transformer.positions import Described

BASE = 10_000.0
"""The slowest pair of dimensions turns about this many times slower than the first one."""


def angles(places: Int[Tensor, "position"], width: int, base: float = BASE) -> Float[Tensor, "position pair"]:
    """How far each pair of dimensions has turned at each place, in radians: p / base^(2i / width), float64, on the CPU.

    The one formula behind sinusoidal ("Attention Is All You Need", section 3.5) and rotary positions ("RoFormer",
    section 3.4.2); p and i count from 0.
    """
    pair = torch.arange(width // 2, dtype=torch.float64)[None, :]
    return places.cpu().double()[:, None] / base ** (2 * pair / width)


class PlaceError(UserError):
    """A place for which an encoding has no number; the message is one sentence."""


class PositionalEncoding(Described, nn.Module):
    """An encoding for up to `n_ctx` positions. The base class tells a model nothing at all."""

    def __init__(self, *, n_ctx: int, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_ctx, self.d_model, self.n_heads, self.d_head = n_ctx, d_model, n_heads, d_model // n_heads

    def vectors(self, length: int) -> Float[Tensor, "position d_model"] | None:
        """What is added to the token embeddings, for the first `length` positions."""
        return None

    def rotate(self, x: Float[Tensor, "*batch position d_head"]) -> Float[Tensor, "*batch position d_head"]:
        """What is done to queries and keys before they meet: a linear map that goes by the position."""
        return x

    def bias(self, n_query: int, n_key: int) -> Float[Tensor, "head query key"] | None:
        """What is added to the scores of each head."""
        return None

    def at(self, places: Int[Tensor, "position"]) -> PositionalEncoding:
        """This encoding as tokens meet it that believe to stand at `places`, counted from 0; itself if it tells none.

        A formula goes on beyond n_ctx and below 0. Raises PlaceError where a table ends.
        """
        return self

    @property
    def movable(self) -> bool:
        """Can tokens be told that they stand elsewhere?"""
        return type(self).at is not PositionalEncoding.at

    def laid_out(self, places: Int[Tensor, "position"], /, **tables: Tensor) -> PositionalEncoding:
        """Another of this kind with these tables, a row a token; none of its weights are drawn, nor its own changed."""
        other = type(self).__new__(type(self))
        PositionalEncoding.__init__(other, n_ctx=len(places), d_model=self.d_model, n_heads=self.n_heads)
        for name, table in tables.items():
            other.register_buffer(name, table, persistent=False)
        return other

    def picture(self, length: int) -> tuple[Float[Tensor, "position dimension"], str]:
        """One row a position, to look at, and what the columns are.

        Of vectors these, of a rotation what it makes of a query of ones, of a bias what a query at position 1 meets.
        """
        if (vectors := self.vectors(length)) is not None:
            return vectors.detach(), "dimension"
        if (bias := self.bias(length, length)) is not None:
            return bias[:, 0].detach().T, "head (what it adds for a query at position 1)"
        state = next(chain(self.buffers(), self.parameters()), torch.zeros(()))
        ones = torch.ones(length, self.d_head, dtype=state.dtype, device=state.device)
        return self.rotate(ones).detach(), "dimension of a head (what becomes of a query of ones)"


NO_POSITIONS = PositionalEncoding(n_ctx=0, d_model=1, n_heads=1)
