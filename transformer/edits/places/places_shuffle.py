"""Shuffle the positions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transformer.edits import Edit, EditError, PlacesEdit, number, tame


@dataclass(frozen=True)
class ShufflePositions(PlacesEdit):
    """Exchange the positions of the tokens at random, in every sequence alike. `seed` decides how."""

    title: ClassVar[str] = "shuffle the positions"
    order: ClassVar[int] = 160
    sample: ClassVar[str] = "7"

    seed: int = number("Draw", 0, 99, default=1)

    def apply(self, value: Tensor) -> Tensor:
        order = torch.randperm(len(value), generator=torch.Generator().manual_seed(self.seed))
        return value[order.to(value.device)]

    @property
    def words(self) -> str:
        return f"positions shuffled (draw {self.seed})"

    def write(self) -> str:
        return f"{self.kind}:{self.seed}"

    @classmethod
    def read(cls, text: str) -> Edit:
        if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
            raise EditError(f"{cls.kind} needs a whole number, not “{tame(text)}”")
        return cls(seed=int(text))
