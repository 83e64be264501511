"""Shift all positions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from transformer.edits import Edit, EditError, PlacesEdit, number, tame


@dataclass(frozen=True)
class ShiftPositions(PlacesEdit):
    """Tell every token that it stands `by` places further on than it does.

    Raises EditError where learned positions have no vector for such a place.
    """

    title: ClassVar[str] = "shift all positions"
    order: ClassVar[int] = 140
    sample: ClassVar[str] = "2"

    by: int = number("by", -99, 99, default=1)

    def __post_init__(self) -> None:
        if self.by == 0:
            raise EditError("a shift by 0 changes nothing: choose another number")

    def apply(self, value: Tensor) -> Tensor:
        return value + self.by

    @property
    def words(self) -> str:
        return f"positions shifted by {self.by:+d}".replace("-", "−")

    def write(self) -> str:
        return f"{self.kind}:{self.by}"

    @classmethod
    def read(cls, text: str) -> Edit:
        if not re.fullmatch(r"[+-]?\d{1,4}", text, re.ASCII):
            raise EditError(f"{cls.kind} needs a whole number, not “{tame(text)}”")
        return cls(by=int(text))
