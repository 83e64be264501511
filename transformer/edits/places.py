"""Edits of what a model is told about the order of its tokens.

Positions come in as vectors added to the embeddings (`decoder.position_embedding`), as a bias on the scores
(`decoder.0.self_attention.position_bias`, ALiBi), or as a rotation of queries and keys, which is a part of them and no
site of its own: with rotary positions, as without any, these edits meet no site.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transformer.edits.base import Edit, EditError

KINDS = ("position_embedding", "position_bias")


@dataclass(frozen=True)
class _Places(Edit):
    """An edit of whatever a model is told about positions, in all its stacks."""

    must_change: ClassVar[bool] = True
    site: str = "*.position_*"

    def meets(self, site: str) -> bool:
        return super().meets(site) and site.rsplit(".", 1)[-1] in KINDS


@dataclass(frozen=True)
class RemovePositions(_Places):
    """Tell the model nothing about positions: what is added for them is zero."""

    def apply(self, value: Tensor) -> Tensor:
        return torch.zeros_like(value)

    @property
    def words(self) -> str:
        return "no positions"


@dataclass(frozen=True)
class SwapPositions(_Places):
    """Tell the model that the tokens at two places, counted from 0, stood at each other's."""

    first: int = 0
    second: int = 1

    def __post_init__(self) -> None:
        if self.first == self.second:
            raise EditError("a position swapped with itself is where it was: choose two")

    def apply(self, value: Tensor) -> Tensor:
        length = value.shape[-2]
        if not (0 <= self.first < length and 0 <= self.second < length):
            raise EditError(f"{self.words}: there are only positions 1 to {length}")
        order = torch.arange(length, device=value.device)
        order[self.first], order[self.second] = self.second, self.first
        # A bias is a table of two places, its rows and its columns; an embedding has one, its rows.
        return value[..., order, :][..., order] if value.ndim == 3 else value[order]

    @property
    def words(self) -> str:
        return f"positions {self.first + 1} and {self.second + 1} swapped"
