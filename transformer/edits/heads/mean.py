"""Remove a head: what it hands on becomes its mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from transformer.edits import EditError, HeadEdit


@dataclass(frozen=True)
class MeanAblateHead(HeadEdit):
    """Remove one head: its z becomes, place by place, the mean over the sequences of this pass (Wang et al., 2022,
    "Interpretability in the Wild", section 2.2): zero is a place where the next layers may never have been.

    One sequence alone raises EditError.
    """

    title: ClassVar[str] = "remove a head: mean"
    order: ClassVar[int] = 20

    def apply(self, value: Tensor) -> Tensor:
        self.check(value)
        if len(value) < 2:
            raise EditError(f"{self.words} needs several sequences in one pass, and here is only one")
        own = value[:, self.head]
        return self.replaced(value, own.mean(dim=0, keepdim=True).expand_as(own))

    @property
    def words(self) -> str:
        return f"{self.name} replaced by its mean"
