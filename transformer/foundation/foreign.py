"""What comes from outside, read with care: files that may be damaged, of another program, or made to do harm.

Each reader says how much it takes at most before it reads, and raises ValueError with words for a person.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from safetensors import safe_open

from transformer.foundation.regular_files import open_file

MOST_WORDS = 4 * 2**20
"""Bytes in the largest of the small JSON files, and of what a file of arrays or weights says of itself."""
MOST_NUMBERS = 256 * 2**20
"""Bytes that a file of arrays may take once it is unpacked."""
MOST_ARRAYS = 4096
"""Arrays in one file."""
LISTED = 200
"""Bytes that a zip's list of contents may have for each file in it."""
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


def read_record(path: Path, most: int = MOST_WORDS) -> dict[str, Any]:
    """The JSON object in a file of at most so many bytes, compressed by xz if its name says so.

    Raises ValueError for what is none, or too large, and OSError.
    """
    content = read_bytes(path, most)
    return record(unpacked(content, most) if path.suffix == ".xz" else content)


def unpacked(content: bytes, most: int) -> bytes:
    """What xz has compressed, of at most so many bytes. Raises ValueError when it has more, or is damaged."""
    reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
    try:
        found = reader.decompress(content, most + 1)
    except lzma.LZMAError:
        raise ValueError("it is not compressed by xz, or damaged") from None
    if len(found) > most:
        raise ValueError(f"it unpacks to more than {size(most)}")
    if not reader.eof:
        raise ValueError("it ends too early")
    return found


def read_bytes(path: Path, most: int) -> bytes:
    """A whole regular file of at most so many bytes. Raises ValueError when it has more, and OSError."""
    with open_file(path) as file:
        content: bytes = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it is larger than {size(most)}")
    return content


def sha256(path: Path) -> str:
    """SHA-256 of a regular file, in hex, as `sha256sum` says it. Raises OSError."""
    with open_file(path) as file:
        return hashlib.file_digest(cast("io.BufferedReader", file), "sha256").hexdigest()


def size(count: int) -> str:
    """Bytes in words: "4 MB", "64 kB"."""
    return f"{count / 2**20:,.0f} MB" if count >= 2**20 else f"{count / 2**10:,.0f} kB"


def read_arrays(path: Path, most: int = MOST_NUMBERS) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, none of them of Python objects, of so many bytes together once they are unpacked.

    Raises ValueError, and OSError.
    """
    content = io.BytesIO(read_bytes(path, most))
    try:
        with open_zip(content, MOST_ARRAYS) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > most:
                raise ValueError("it unpacks to too much")
        content.seek(0)
        with np.load(content, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except ValueError:
        raise
    except Exception as error:  # of a dozen kinds, down to a tokenizer's: NumPy raises what it stumbles over
        why = shortened(str(error) or type(error).__name__)
        raise ValueError(f"it is no file of arrays, or not a whole one ({why})") from None


def open_zip(stream: IO[bytes], most: int) -> zipfile.ZipFile:
    """A zip of at most so many files; nothing is read before its last bytes say that its list of them is as short.

    Raises ValueError, and whatever else zipfile ends in.
    """
    stream.seek(max(0, stream.seek(0, os.SEEK_END) - 42))
    tail = stream.read()
    stream.seek(0)
    if not tail[-22:].startswith(_END):
        raise ValueError("it is no zip file, or not a whole one")
    if tail[-42:].startswith(_END64) or int.from_bytes(tail[-10:-6], "little") > LISTED * most:
        raise ValueError(f"it lists too many files: {most:,} at most")
    return zipfile.ZipFile(stream)


def words_of(array: np.ndarray) -> dict[str, Any]:
    """The JSON object that a file of arrays has as a text, in an array of its own. Raises ValueError."""
    if array.shape or array.dtype.kind != "U" or array.dtype.itemsize > 4 * MOST_WORDS:
        raise ValueError(f"its words are no text of at most {size(MOST_WORDS)}")
    return record(str(array))


def open_tensors(path: Path, framework: str) -> Any:
    """A safetensors file, as its library opens it: numbers for "pt" or "np". Raises SafetensorError, ValueError where
    what it says of itself is longer than MOST_WORDS, and OSError."""
    with open_file(path) as file:
        told = int.from_bytes(file.read(8), "little")
        if MOST_WORDS < told <= os.fstat(file.fileno()).st_size:
            raise ValueError(f"what it says of its tensors is larger than {size(MOST_WORDS)}")
    return safe_open(str(path), framework=framework)


def _whole(digits: str) -> int:
    if len(digits) > len(str(-LARGEST)) or abs(int(digits)) >= LARGEST:
        raise ValueError(f"it has a number of {len(digits.lstrip('-'))} digits")
    return int(digits)


_END, _END64 = b"PK\x05\x06", b"PK\x06\x07"
_DECODER = json.JSONDecoder(parse_int=_whole)
