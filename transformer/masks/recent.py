"""Causal local attention ("Generating Long Sequences with Sparse Transformers", section 4.3)."""

from dataclasses import dataclass
from typing import ClassVar

from transformer.masks import Mask, number


@dataclass(frozen=True)
class Recent(Mask):
    """A query sees itself and the `width` keys before it."""

    description: ClassVar[str] = "a query sees itself and the few keys just before it"
    width: int = number(4)

    def visible(self, query, key, padding):
        return (key <= query) & (query - key <= self.width)
