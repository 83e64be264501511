"""Let a head look evenly at all keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transformer.edits import HeadEdit


@dataclass(frozen=True)
class EvenPattern(HeadEdit):
    """Let a head look evenly at all keys that the mask allows: all its scores are 0."""

    title: ClassVar[str] = "look evenly at all"
    order: ClassVar[int] = 50
    part: ClassVar[str] = "scores"

    def apply(self, value: Tensor) -> Tensor:
        self.check(value)
        return self.replaced(value, torch.zeros_like(value[:, self.head]))

    @property
    def words(self) -> str:
        return f"{self.name} looking evenly at all"
