"""Keep one head of an attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transformer.edits import HeadEdit


@dataclass(frozen=True)
class KeepOnlyHead(HeadEdit):
    """Keep one head: the output z of all other heads of its layer's attention becomes zero.

    `site` and `head` as in `AblateHead`.
    """

    title: ClassVar[str] = "keep only this head"
    order: ClassVar[int] = 40

    def apply(self, value: Tensor) -> Tensor:
        self.check(value)
        return self.replaced(torch.zeros_like(value), value[:, self.head])

    @property
    def words(self) -> str:
        return f"only {self.name} kept in its layer"
