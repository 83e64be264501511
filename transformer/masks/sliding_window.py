"""Local attention: only near neighbours, on both sides ("Longformer", section 3.1)."""

from dataclasses import dataclass
from typing import ClassVar

from transformer.masks import Mask, number


@dataclass(frozen=True)
class SlidingWindow(Mask):
    """A query sees the keys at most `width` places away, before or after."""

    description: ClassVar[str] = "a query sees only its near neighbours, on both sides"
    width: int = number(2)

    def visible(self, query, key, padding):
        return abs(query - key) <= self.width
