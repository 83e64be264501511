"""Files that other processes read while they are written.

By hand: the standard library has `os.replace` and no more, and the package for the rest (atomicwrites) is given up.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, and nothing between. Raises OSError.

    A process killed in the midst of it leaves the old file, and a hidden one that nobody reads.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
