"""One message to the browser: `u32 header length | JSON header | padding to 4 | body`, little-endian.

Bytes travel as they are, so arrays need neither JSON nor base64, and the padding lets the browser lay a
`Float32Array` over the body without copying.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any

ALIGNMENT = 4


def pad(data: bytes) -> bytes:
    """`data`, followed by as many zero bytes as the alignment asks for."""
    return data + bytes(-len(data) % ALIGNMENT)


def pack(header: Mapping[str, Any], body: bytes) -> bytes:
    """The message that holds `header` and `body`."""
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return pad(struct.pack("<I", len(text)) + text) + body


def unpack(message: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and body of a message: the inverse of `pack`, and what the browser does."""
    (length,) = struct.unpack_from("<I", message)
    end = 4 + length
    return json.loads(message[4:end]), message[end + -end % ALIGNMENT :]


class Body:
    """Bytes being laid end to end; what is added comes back as its offset, a multiple of four."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.offsets: dict[bytes, int] = {}

    def add(self, block: bytes) -> int:
        offset = len(self.data)
        self.data += pad(block)
        return offset

    def add_once(self, block: bytes) -> int:
        if block not in self.offsets:
            self.offsets[block] = self.add(block)
        return self.offsets[block]


class Distinct:
    """A list without repeats; what is added comes back as its index."""

    def __init__(self) -> None:
        self.values: list[tuple[str, ...]] = []

    def add(self, value: tuple[str, ...]) -> int:
        if value not in self.values:
            self.values.append(value)
        return self.values.index(value)
