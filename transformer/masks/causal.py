"""The decoder's mask: no query sees a later key ("Attention Is All You Need", section 3.1)."""

from dataclasses import dataclass
from typing import ClassVar

from transformer.masks import Mask


@dataclass(frozen=True)
class Causal(Mask):
    """A query sees itself and what came before."""

    description: ClassVar[str] = "a query sees itself and what came before it"

    def visible(self, query, key, padding):
        return key <= query
