"""The folder in which a submission may write: it may be filled, nested without end, and closed against its reader."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from uuid import uuid4

MOST_BYTES, MOST_FILES = 64 * 2**20, 1000
"""What may lie in it."""


def is_small(folder: Path) -> bool:
    """Does no more lie in a folder than may? False as well where its paths are too long to look."""
    taken = count = 0
    left = [str(folder)]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    count += 1
                    with contextlib.suppress(FileNotFoundError):
                        taken += entry.stat(follow_symlinks=False).st_blocks * 512
                    if taken > MOST_BYTES or count > MOST_FILES:
                        return False
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True


def remove(folder: Path) -> None:
    """Remove a folder however deep it is: what lies in an inner one is moved to the top first."""
    with contextlib.suppress(OSError):
        while entries := list(os.scandir(folder)):
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                os.chmod(entry.path, 0o700)
                for inner in list(os.scandir(entry.path)):
                    if inner.is_dir(follow_symlinks=False):
                        os.chmod(inner.path, 0o700)  # one that is closed cannot be moved, but by root
                    os.rename(inner.path, folder / uuid4().hex)  # a name that nothing there has
                os.rmdir(entry.path)
        os.rmdir(folder)
