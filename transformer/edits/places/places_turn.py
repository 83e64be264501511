"""Shift the positions cyclically."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from transformer.edits.places.places_shift import ShiftPositions


@dataclass(frozen=True)
class TurnPositions(ShiftPositions):
    """Shift the positions cyclically by `by` places: those that run over one end come in at the other."""

    title: ClassVar[str] = "shift the positions cyclically"
    order: ClassVar[int] = 150

    def apply(self, value: Tensor) -> Tensor:
        return value.roll(-self.by)

    @property
    def words(self) -> str:
        return f"positions cyclically shifted by {self.by:+d}".replace("-", "−")
