"""What comes from outside, read with care: files that may be damaged, of another program, or made to do harm.

Each reader says how much it takes at most before it reads, and raises ValueError with words for a person.
"""

from __future__ import annotations

import io
import json
import lzma
import stat
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

MOST_WORDS = 4 * 2**20
"""Bytes in the largest of the small JSON files, and in the longest line of a long one."""
MOST_NUMBERS = 256 * 2**20
"""Bytes that a file of arrays may take once it is unpacked."""
MOST_MEMORY = 64 * 2**20
"""Bytes of memory that unpacking may take: a file says how much it wants."""
LARGEST = 2**63
"""No whole number in a file reaches it: NumPy, JavaScript and the disk count no further."""
REPEATED = 80
"""The most characters of a foreign text that a sentence repeats."""
DAMAGED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    NotImplementedError,
    EOFError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What a damaged file can end in, where a library reads it. A disk that fails is no such thing."""


def shortened(value: object, most: int = REPEATED) -> str:
    """A foreign value, safe to repeat in a sentence: printable, on one line, of at most `most` characters."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(c if c.isprintable() else "?" for c in text[: most + 1])
    return f"{text[: most - 1]}…" if len(text) > most else text


def quoted(value: object) -> str:
    """The same as Python writes it: a text in quotation marks, a number without."""
    return repr(shortened(value)) if isinstance(value, str) else shortened(value)


def record(text: str | bytes) -> dict[str, Any]:
    """A JSON object whose whole numbers are below 2⁶³. Raises ValueError."""
    try:
        found = _DECODER.decode(text if isinstance(text, str) else text.decode())
    except UnicodeDecodeError:
        raise ValueError("it is no UTF-8 text") from None
    except json.JSONDecodeError:
        raise ValueError("it is not JSON") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it is no record")
    return found


def read_record(path: Path) -> dict[str, Any]:
    """The JSON object in a file, compressed by xz if its name says so.

    Raises ValueError for what is none, or too large, and OSError.
    """
    content = read_bytes(path, MOST_WORDS)
    return record(unpacked(content, MOST_WORDS) if path.suffix == ".xz" else content)


def unpacked(content: bytes, most: int) -> bytes:
    """What xz has compressed, of at most so many bytes. Raises ValueError when it has more, or is damaged."""
    reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
    try:
        found = reader.decompress(content, most + 1)
    except lzma.LZMAError:
        raise ValueError("it is not compressed by xz, or damaged") from None
    if len(found) > most:
        raise ValueError(f"it unpacks to more than {most // 2**20} MB")
    if not reader.eof:
        raise ValueError("it ends too early")
    return found


def read_bytes(path: Path, most: int) -> bytes:
    """A whole file of at most so many bytes. Raises ValueError when it has more or is no file, and OSError."""
    if not stat.S_ISREG(mode := path.stat().st_mode) and not stat.S_ISDIR(mode):
        raise ValueError("it is a pipe or a device, and no file")  # to read it could take for ever
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it is larger than {most // 2**20} MB")
    return content


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, none of them of Python objects. Raises ValueError, and OSError."""
    content = io.BytesIO(read_bytes(path, MOST_NUMBERS))
    try:
        with zipfile.ZipFile(content) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > MOST_NUMBERS:
                raise ValueError("it unpacks to too much")
        content.seek(0)
        with np.load(content, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except ValueError:
        raise
    except Exception as error:  # of a dozen kinds, down to a tokenizer's: NumPy raises what it stumbles over
        why = shortened(str(error) or type(error).__name__)
        raise ValueError(f"it is no file of arrays, or not a whole one ({why})") from None


def _whole(digits: str) -> int:
    if len(digits) > len(str(-LARGEST)) or abs(int(digits)) >= LARGEST:
        raise ValueError(f"it has a number of {len(digits.lstrip('-'))} digits")
    return int(digits)


_DECODER = json.JSONDecoder(parse_int=_whole)
