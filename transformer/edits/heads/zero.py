"""Remove a head: what it hands on becomes zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transformer.edits import HeadEdit


@dataclass(frozen=True)
class AblateHead(HeadEdit):
    """Remove one head: its z becomes zero (Michel et al., 2019, "Are Sixteen Heads Really Better than One?",
    section 2.3)."""

    title: ClassVar[str] = "remove a head: zero"
    order: ClassVar[int] = 10

    def apply(self, value: Tensor) -> Tensor:
        self.check(value)
        return self.replaced(value, torch.zeros_like(value[:, self.head]))

    @property
    def words(self) -> str:
        return f"{self.name} removed"
