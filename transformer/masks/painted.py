"""A mask painted cell by cell: the one that is not a rule, so it holds up to the length it was painted at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool

from transformer.foundation import packed_cells
from transformer.masks import Mask

LARGEST = 512
"""The most positions that are painted: 32 kB of cells."""


@dataclass(frozen=True)
class Painted(Mask):
    """For each query of the first `n`, which keys it sees. A shorter input takes the upper left part.

    Written "painted:16:" and the cells as `transformer.foundation.packed_cells` writes them.
    """

    description: ClassVar[str] = "a query sees the keys that were painted for it"
    n: int = LARGEST
    packed: bytes = b"\xff" * packed_cells.size(LARGEST, LARGEST)
    """The cells as `numpy.packbits` writes them; the bits after the last are 0."""

    def __post_init__(self) -> None:
        if not 1 <= self.n <= LARGEST:
            raise ValueError(f"a painted mask has 1 to {LARGEST} positions, not {self.n}")
        size = packed_cells.size(self.n, self.n)
        if len(self.packed) != size or self.packed[-1] & ((1 << (8 * size - self.n**2)) - 1):
            raise ValueError(f"a painted mask of {self.n} positions has {self.n**2} cells, and these are not as many")

    @classmethod
    def of(cls, visible: Bool[np.ndarray, "n n"]) -> Painted:
        """From a mask written out, query × key; True = may see."""
        return cls(len(visible), packed_cells.packed(visible))

    @classmethod
    def read(cls, values: Sequence[str]) -> Painted:
        """What stands after the colons: the positions and the cells. Whatever the text is, little is unpacked of it."""
        if not values:
            return cls()
        n, text = values if len(values) == 2 else ("", "")
        if not (n.isascii() and n.isdecimal() and len(n) <= 3 and 1 <= int(n) <= LARGEST):
            raise ValueError(f"a painted mask is written painted:N:CELLS, with 1 to {LARGEST} positions")
        try:
            return cls.of(packed_cells.read(text, int(n), int(n)))
        except ValueError as error:
            raise ValueError(f"the cells of this painted mask of {n} positions cannot be read: {error}") from None

    def __str__(self) -> str:
        return f"{self.name}:{self.n}:{packed_cells.written(self.cells)}"

    @property
    def label(self) -> str:
        """How many of its cells may be seen: that tells it from most others."""
        return f"{self.name} ({int(self.cells.sum()):,} cells)"

    @property
    def longest(self) -> int:
        return self.n

    @property
    def cells(self) -> Bool[np.ndarray, "n n"]:
        """The mask, query × key."""
        return packed_cells.unpacked(self.packed, self.n, self.n)

    def visible(self, query, key, padding):
        most = 1 + max(int(query.max(initial=0)), int(key.max(initial=0)))
        if most > self.n:
            raise ValueError(f"this mask was painted for {self.n} positions, and the input has {most}")
        return self.cells[query, key]
