"""Edits of what a model is told about the order of its tokens.

Where each token of a stack believes to stand is a site, `decoder.places`: int [position], counted from 0. What is put
there is what the encoding works with, whichever it is: vectors that are added, a rotation, or a bias by distance
(`PositionalEncoding.at`). A model without positions has no such site.

All stacks are meant unless `site` names one, "encoder.places" or "decoder.places": of an encoder-decoder the source
and the tokens alike, each counted by itself. Cross-attention is told of places only by vectors that were added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transformer.edits.base import Edit, EditError


@dataclass(frozen=True)
class _Places(Edit):
    """An edit of where tokens believe to stand, in all stacks."""

    must_change: ClassVar[bool] = True
    site: str = "*.places"


@dataclass(frozen=True)
class RemovePositions(_Places):
    """Tell the model nothing about positions: no two tokens stand apart, and what would be added for them is zero."""

    site: str = "*.p*"

    def meets(self, site: str) -> bool:
        return super().meets(site) and site.rsplit(".", 1)[-1] in ("places", "position_embedding")

    def apply(self, value: Tensor) -> Tensor:
        return torch.zeros_like(value)

    @property
    def words(self) -> str:
        return "no positions"


@dataclass(frozen=True)
class ShiftPositions(_Places):
    """Tell every token that it stands `by` places further on than it does; EditError where a learned table ends."""

    by: int = 1

    def __post_init__(self) -> None:
        if self.by == 0:
            raise EditError("positions shifted by 0 are where they were: choose another number")

    def apply(self, value: Tensor) -> Tensor:
        return value + self.by

    @property
    def words(self) -> str:
        return f"positions shifted by {self.by:+d}".replace("-", "−")


@dataclass(frozen=True)
class TurnPositions(ShiftPositions):
    """Shift the positions `by` places, those that run over an end coming in at the other: no new one is needed."""

    def apply(self, value: Tensor) -> Tensor:
        return value.roll(-self.by)

    @property
    def words(self) -> str:
        return f"positions turned by {self.by:+d}".replace("-", "−")


@dataclass(frozen=True)
class SwapPositions(_Places):
    """Tell the model that the tokens at two places, counted from 0, stood at each other's."""

    first: int = 0
    second: int = 1

    def __post_init__(self) -> None:
        if self.first == self.second:
            raise EditError("a position swapped with itself is where it was: choose two")

    def apply(self, value: Tensor) -> Tensor:
        length = len(value)
        if not (0 <= self.first < length and 0 <= self.second < length):
            raise EditError(f"{self.words}: there are only positions 1 to {length}")
        swapped = value.clone()
        swapped[[self.first, self.second]] = value[[self.second, self.first]]
        return swapped

    @property
    def words(self) -> str:
        return f"positions {self.first + 1} and {self.second + 1} swapped"


@dataclass(frozen=True)
class ShufflePositions(_Places):
    """Deal the places out anew among the tokens, the same way in every sequence: drawn with `seed`."""

    seed: int = 0

    def apply(self, value: Tensor) -> Tensor:
        order = torch.randperm(len(value), generator=torch.Generator().manual_seed(self.seed))
        return value[order.to(value.device)]

    @property
    def words(self) -> str:
        return f"positions shuffled (draw {self.seed})"
