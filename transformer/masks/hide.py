"""Causal attention to all keys but one: what was that token good for?"""

from dataclasses import dataclass
from typing import ClassVar

from transformer.masks import Mask, number


@dataclass(frozen=True)
class Hide(Mask):
    """Causal, and no later query sees the key at `position`, counted from 1; its own query does."""

    description: ClassVar[str] = "causal, and one position is hidden from all later queries"
    position: int = number(9, 1)

    def visible(self, query, key, padding):
        return (key == query) | ((key < query) & (key + 1 != self.position))
