"""Prefix attention: a prompt seen whole, and a causal rest (T5, "Exploring the Limits of Transfer Learning", 3.2.1)."""

from dataclasses import dataclass
from typing import ClassVar

from transformer.masks import Mask, number


@dataclass(frozen=True)
class Prefix(Mask):
    """The first `width` keys are visible to all; what follows is causal."""

    description: ClassVar[str] = "every query sees the first keys; the others follow the causal mask"
    width: int = number(4)

    def visible(self, query, key, padding):
        return (key < self.width) | (key <= query)
