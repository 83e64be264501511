"""Remove a head: what it hands on becomes zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transformer.edits import HeadEdit


@dataclass(frozen=True)
class AblateHead(HeadEdit):
    """Remove one head: its output z, before heads are joined, becomes zero.

    Michel et al. (2019), "Are Sixteen Heads Really Better than One?", section 2.3. `site` is where z is recorded, as in
    `AblateHead("decoder.0.self_attention.z", head=2)`. Heads count from 0.
    """

    title: ClassVar[str] = "remove a head: zero"
    order: ClassVar[int] = 10

    def apply(self, value: Tensor) -> Tensor:
        self.check(value)
        return self.replaced(value, torch.zeros_like(value[:, self.head]))

    @property
    def words(self) -> str:
        return f"{self.name} removed"
