"""A mask painted cell by cell: the one that is not a rule, so it holds up to the length it was painted at."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool

from transformer.masks import Mask

LARGEST = 64
"""The most positions that are painted: a cell must be hit with a pointer, and the mask must fit into a link."""


@dataclass(frozen=True)
class Painted(Mask):
    """For each query of the first `n`, which keys it sees. A shorter input takes the upper left part.

    Written "painted:16:" and the cells, row by row, eight to a byte, as URL-safe base64 without "="; the bytes are
    deflated (RFC 1951) where that makes them fewer.
    """

    description: ClassVar[str] = "a query sees the keys that were painted for it"
    n: int = LARGEST
    packed: bytes = b"\xff" * (LARGEST * LARGEST // 8)
    """The cells as `numpy.packbits` writes them; the bits after the last are 0."""

    def __post_init__(self) -> None:
        if not 1 <= self.n <= LARGEST:
            raise ValueError(f"a painted mask has 1 to {LARGEST} positions, not {self.n}")
        size = _bytes(self.n)
        if len(self.packed) != size or self.packed[-1] & ((1 << (8 * size - self.n**2)) - 1):
            raise ValueError(f"a painted mask of {self.n} positions has {self.n**2} cells, and these are not as many")

    @classmethod
    def of(cls, visible: Bool[np.ndarray, "n n"]) -> Painted:
        """From a mask written out, query × key; True = may see."""
        return cls(len(visible), np.packbits(visible).tobytes())

    @classmethod
    def read(cls, values: Sequence[str]) -> Painted:
        """What stands after the colons: the positions and the cells. Whatever the text is, little is unpacked of it."""
        if not values:
            return cls()
        n, cells = values if len(values) == 2 else ("", "")
        if not (n.isascii() and n.isdecimal() and len(n) <= 2 and 1 <= int(n) <= LARGEST):
            raise ValueError(f"a painted mask is written painted:N:CELLS, with 1 to {LARGEST} positions")
        return cls(int(n), _unpacked(cells, _bytes(int(n))))

    def __str__(self) -> str:
        squeezed = zlib.compress(self.packed, 9, -zlib.MAX_WBITS)
        shorter = squeezed if len(squeezed) < len(self.packed) else self.packed
        return f"{self.name}:{self.n}:{base64.urlsafe_b64encode(shorter).decode().rstrip('=')}"

    @property
    def label(self) -> str:
        """Its size, and four hex digits that tell it from others."""
        return f"{self.name}:{self.n}#{zlib.crc32(self.packed) & 0xFFFF:04x}"

    @property
    def longest(self) -> int:
        return self.n

    @property
    def cells(self) -> Bool[np.ndarray, "n n"]:
        """The mask, query × key."""
        bits = np.unpackbits(np.frombuffer(self.packed, dtype=np.uint8), count=self.n**2)
        return bits.astype(bool).reshape(self.n, self.n)

    def visible(self, query, key, padding):
        most = 1 + max(int(query.max(initial=0)), int(key.max(initial=0)))
        if most > self.n:
            raise ValueError(f"this mask was painted for {self.n} positions and says nothing about {most}")
        return self.cells[query, key]


def _bytes(n: int) -> int:
    return -(-(n**2) // 8)


def _unpacked(text: str, size: int) -> bytes:
    """`size` bytes from base64, deflated or not. Raises ValueError when the text is anything else."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        if len(data) == size:
            return data
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        cells = inflater.decompress(data, size + 1)
    except (binascii.Error, zlib.error, ValueError):
        raise ValueError("the cells of this painted mask cannot be read: its text is damaged") from None
    if len(cells) != size or not inflater.eof or inflater.unused_data:
        raise ValueError("the cells of this painted mask cannot be read: they are too few or too many")
    return cells
