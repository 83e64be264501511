"""Cells that were painted, as a short text: bits, deflated (RFC 1951), as URL-safe base64 without "="."""

from __future__ import annotations

import base64
import binascii
import zlib

import numpy as np
from jaxtyping import Bool

PLAIN = 64
"""Rows up to which the bits are those of the cells; of more rows each is written as what differs from the one above,
for what is painted on many rows is painted in squares and stripes."""


def packed(cells: Bool[np.ndarray, "row column"]) -> bytes:
    """Row by row, eight cells to a byte, as `numpy.packbits` writes them; the bits after the last are 0."""
    return np.packbits(cells).tobytes()


def unpacked(data: bytes, rows: int, columns: int) -> Bool[np.ndarray, "row column"]:
    """The inverse."""
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=rows * columns)
    return bits.astype(bool).reshape(rows, columns)


def size(rows: int, columns: int) -> int:
    """Bytes of so many cells."""
    return -(-rows * columns // 8)


def written(cells: Bool[np.ndarray, "row column"]) -> str:
    """The text that `read` reads; not deflated where that would make it longer."""
    above = np.zeros_like(cells)
    if len(cells) > PLAIN:
        above[1:] = cells[:-1]
    bits = packed(cells ^ above)
    squeezed = zlib.compress(bits, 9, -zlib.MAX_WBITS)
    return base64.urlsafe_b64encode(min(bits, squeezed, key=len)).decode().rstrip("=")


def read(text: str, rows: int, columns: int) -> Bool[np.ndarray, "row column"]:
    """The cells of a text. Raises ValueError when it is none of that size; whatever it is, little is unpacked of it."""
    bits = _bits(text, size(rows, columns))
    if bits[-1] & ((1 << -rows * columns % 8) - 1):
        raise ValueError(f"there are {rows * columns} cells, and these are not as many")
    cells = unpacked(bits, rows, columns)
    return np.logical_xor.accumulate(cells) if rows > PLAIN else cells


def _bits(text: str, expected: int) -> bytes:
    """So many bytes from base64, deflated or not."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        if len(data) == expected:
            return data
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        bits = inflater.decompress(data, expected + 1)
    except (binascii.Error, zlib.error, ValueError):
        raise ValueError("the cells cannot be read: their text is damaged") from None
    if len(bits) != expected or not inflater.eof or inflater.unused_data:
        raise ValueError("the cells cannot be read: they are too few or too many")
    return bits
