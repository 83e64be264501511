"""Files that other processes read while they are written, and that a power loss must not tear.

By hand: the standard library has `os.replace` and no more, and the package for the rest (atomicwrites) is given up.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from pathlib import Path

ABANDONED = 3600.0
"""Seconds after which nobody is still writing a file."""
_TEMPORARY = re.compile(r"\..+\.(\d+)-(\d+)\.tmp", re.ASCII)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, and nothing between. Raises OSError.

    A process killed in the midst of it leaves the old file, and a hidden one that `sweep` takes away. The bytes are on
    the disk before the file gets its name, and the name before this returns: after a power loss, too, it is the old one
    or the new one. The folder has to be there: one that somebody has taken away is not made anew.
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


def sweep(folder: Path) -> None:
    """Take away the hidden files that killed processes left in a folder while they were writing others."""
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            found = _TEMPORARY.fullmatch(path.name)
            if found and not _being_written(path, int(found[1]), int(found[2])):
                path.unlink()


def _being_written(path: Path, process: int, thread: int) -> bool:
    """May a process still be at work on a hidden file? One of another machine is believed to be for an hour."""
    if process == os.getpid():
        return thread in {each.ident for each in threading.enumerate()} - {threading.get_ident()}
    if os.name != "nt":  # where this would end it
        try:
            os.kill(process, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            pass
    return time.time() - path.stat().st_mtime < ABANDONED


def sync_folder(folder: Path) -> None:
    """Have the disk know what the files of a folder are called. Raises OSError."""
    if os.name == "nt":  # where a folder cannot be opened, and renames are written through
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
