"""Is somebody at work in this folder? A lock says so, which the system takes back however its holder ends.

A process number can be dead, a zombie, or another's by now; a heartbeat is late by definition. An advisory lock on a
file is none of these: it is gone in the instant in which its process is.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from transformer.foundation.atomic_files import sweep
from transformer.foundation.regular_files import open_file

try:
    import fcntl
except ImportError:  # Windows has no such lock; heartbeats have to do there
    fcntl = None  # type: ignore[assignment]

NAME = "lock"
PATIENCE = 2.0
"""Seconds for which a new worker waits for those who only looked whether the folder is free."""


class Occupied(RuntimeError):
    """Another process is at work in the folder."""


@contextlib.contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Be the one at work in the folder, and take away what those before left half written.

    Raises Occupied when somebody else is, and OSError where it cannot be told.
    """
    if fcntl is None:
        _sweep(folder)
        yield
        return
    with open_file(folder / NAME, "a") as file:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Occupied(f"another process is training {folder.name}") from None
                time.sleep(0.01)
        _sweep(folder)
        yield


def _sweep(folder: Path) -> None:
    for place in (folder, folder / "snapshots"):
        sweep(place)


def held(folder: Path) -> bool | None:
    """Is a process of this machine at work in the folder? None when that cannot be told here."""
    if fcntl is None:
        return None
    try:
        with open_file(folder / NAME) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False
