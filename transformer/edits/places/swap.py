"""Swap two positions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from transformer.edits import Edit, EditError, PlacesEdit


@dataclass(frozen=True)
class SwapPositions(PlacesEdit):
    """Exchange the positions of two tokens, those at `first` and at `second`, counted from 0.

    Raises EditError where the two are the same, or where the input has no such place.
    """

    title: ClassVar[str] = "swap two positions"
    order: ClassVar[int] = 130
    sample: ClassVar[str] = "3,5"

    first: int = 0
    second: int = 1

    def __post_init__(self) -> None:
        if self.first == self.second:
            raise EditError("a swap needs two different positions: choose two")

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

    def write(self) -> str:
        return f"{self.kind}:{self.first + 1},{self.second + 1}"

    @classmethod
    def read(cls, text: str) -> Edit:
        """The edit from two positions in a text, "3,5", which count from 1."""
        found = re.fullmatch(r"(\d{1,5}),(\d{1,5})", text, re.ASCII)
        if not found or "0" in found.groups():
            raise EditError(f"a swap names two positions, as in {cls.example()}")
        return cls(first=int(found[1]) - 1, second=int(found[2]) - 1)
