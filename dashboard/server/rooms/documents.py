"""Whether what a lecturer's page sends is a document: gzip, with JSON inside, and not too much of it."""

from __future__ import annotations

import hashlib
import json
import zlib

from dashboard.server.rooms.limits import Limits, Refused

GZIP = 16 + zlib.MAX_WBITS
PIECE = 1 << 16
"""Bytes that are inflated at a time."""


def checked(document: bytes, limits: Limits) -> str:
    """The SHA-256 of a document as it came, in hex. Raises Refused: 413 when it is too large, 400 when it is none.

    It takes a while: half a second for the largest. Most of that is one call that lets no other thread run.
    """
    content = inflated(document, limits.inflated)
    # Whatever is read becomes an object of Python, 50 to 200 bytes each: they are counted before.
    if sum(content.count(mark) for mark in (b",", b"[", b"{")) > limits.values:
        raise Refused(413, f"A document may hold {limits.values:,} values; this one has more.")
    try:
        json.loads(content)
    except (ValueError, RecursionError):  # ValueError: no JSON, or no UTF-8
        raise Refused(400, "A document must be JSON; what came is not.") from None
    return hashlib.sha256(document).hexdigest()


def inflated(document: bytes, most: int) -> bytes:
    """What is in one member of gzip (RFC 1952), of `most` bytes at most. Raises Refused."""
    reader = zlib.decompressobj(wbits=GZIP)
    pieces, size, rest = [], 0, document
    try:
        while rest and not reader.eof:
            piece = reader.decompress(rest, PIECE)
            rest = reader.unconsumed_tail
            size += len(piece)
            if size > most:
                raise Refused(413, f"A document may hold {most / 1e6:.0f} MB; this one inflates to more.")
            pieces.append(piece)
    except zlib.error:
        reader = zlib.decompressobj(wbits=GZIP)
    if not reader.eof or reader.unused_data:
        raise Refused(400, "A document must be compressed with gzip; what came is not, or it is cut off.")
    return b"".join(pieces)
