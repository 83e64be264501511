"""Regular files, opened without waiting: whatever else stands where a file should be is refused with what it is.

Opening a named pipe waits until somebody writes into it, and a device may deliver bytes without end. In a folder that a
stranger has filled each file of a run may be one. A link to a regular file is followed: large files may lie on another
disk, and the cache of Hugging Face is made of links. A packed run cannot hold one (`training/exchange/archive.py`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import IO, Any

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)  # Windows has neither, nor needs them


class NotAFile(OSError):
    """Something else stands at `filename`; `strerror` says what: "it is a named pipe, not a file"."""


def open_file(path: Path, mode: str = "rb", buffering: int = -1) -> IO[Any]:
    """A regular file, opened as `open` does it. Raises NotAFile for anything else, and OSError."""
    return open(path, mode, buffering, opener=_opened)


def require_file(path: Path) -> None:
    """Raises NotAFile unless a path leads to a regular file, and OSError where it leads nowhere."""
    _expect_regular(path, path.stat())


def _opened(path: str, flags: int) -> int:
    """A descriptor, as the `opener` of `open` returns it."""
    with contextlib.suppress(FileNotFoundError):  # which writing makes
        _expect_regular(path, os.stat(path))
    opened = os.open(path, flags | _WITHOUT_WAITING, 0o666)
    try:
        _expect_regular(path, os.fstat(opened))  # by now it may be another
    except OSError:
        os.close(opened)
        raise
    return opened


def _expect_regular(path: Path | str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise NotAFile(errno.EINVAL, f"it is {kind}, not a file", str(path))
