"""Block-local attention: the sequence in pieces that do not see each other ("Image Transformer", section 3.3)."""

from dataclasses import dataclass
from typing import ClassVar

from transformer.masks import MOST, Mask, number


@dataclass(frozen=True)
class Block(Mask):
    """A query sees the keys of its own block, blocks of `width` positions being laid end to end."""

    description: ClassVar[str] = "a query sees the keys of its own block and no other"
    width: int = number(4, 1, MOST)

    def visible(self, query, key, padding):
        return query // self.width == key // self.width
