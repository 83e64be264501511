"""Files that other processes read while they are written, and that a power loss must not tear.

By hand: the standard library has `os.replace` and no more, and the package for the rest (atomicwrites) is given up.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, and nothing between. Raises OSError.

    A process killed in the midst of it leaves the old file, and a hidden one that nobody reads. The bytes are on the
    disk before the file gets its name, and the name before this returns: after a power loss, too, it is the old one or
    the new one. The folder has to be there: one that somebody has taken away is not made anew.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Have the disk know what the files of a folder are called. Raises OSError."""
    if os.name == "nt":  # where a folder cannot be opened, and renames are written through
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
