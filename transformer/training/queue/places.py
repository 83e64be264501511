"""Places for trainings in one folder of runs: so many go on at once, whichever server began them.

A place is a locked file. The system takes the lock back however its holder ends, so no place is ever lost.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import IO

from transformer.foundation.regular_files import open_file

try:
    import fcntl
except ImportError:  # Windows has no such lock; each server keeps to its own limit there
    fcntl = None  # type: ignore[assignment]

FOLDER = ".places"
"""Where they lie, below the folder of runs."""


class Places:
    """One process's claim to one of `most` places below `root`."""

    def __init__(self, root: Path, most: int) -> None:
        self.folder, self.most = root / FOLDER, most
        self._held: IO[str] | None = None

    def take(self) -> bool:
        """Is a place this process's, from before or from now on?

        A folder in which nothing can be locked or written limits nobody.
        """
        if self._held is not None or fcntl is None:
            return True
        try:
            self.folder.mkdir(exist_ok=True)
            for number in range(self.most):
                file = open_file(self.folder / str(number + 1), "a")
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    file.close()
                    continue
                except OSError:
                    file.close()
                    raise
                self._held = file
                return True
        except OSError:
            return True
        return False

    def give(self) -> None:
        """Let others have it."""
        if self._held is not None:
            with contextlib.suppress(OSError):
                self._held.close()
            self._held = None
