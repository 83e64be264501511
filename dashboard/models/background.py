"""A measurement that takes longer than anybody waits: a process of its own, beside the dashboard."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TypeVar


class Measuring:
    """The one process that measures; it belongs to the server, and its file says how far it is.

    `command` is one of `python -m transformer`, which takes the file as its --out. Where that file `grows`, an older
    one goes when it begins; else it stands until it is replaced.
    """

    def __init__(self, command: str, *, grows: bool = True) -> None:
        self._command, self._grows = command, grows
        self.path: Path | None = None
        """What it writes, or wrote last."""
        self.stopped = False
        """Was the last one ended by `stop`?"""
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def failed(self) -> bool:
        """Did the last one end before its time?"""
        return self._process is not None and self._process.poll() not in (None, 0)

    def start(self, path: Path, *options: str) -> None:
        """Begin, unless one is at it. Raises OSError when no process can be made."""
        with self._lock:
            if self.running:
                return
            if self._grows:
                path.unlink(missing_ok=True)
            self.path, self.stopped = path, False
            command = [sys.executable, "-m", "transformer", self._command, "--out", str(path), *options]
            # Below everything else: whoever looks at a page comes first.
            nice = ["nice"] if os.name == "posix" else []
            self._process = subprocess.Popen([*nice, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        """End it; what it has measured stays."""
        with self._lock:
            if self._process is not None and self.running:
                self.stopped = True
                self._process.terminate()
                self._process.wait()


T = TypeVar("T")
AT_ONCE = 0.4
"""Seconds for which a page waits for a measurement; what takes longer is shown when it is there, and clicks go on."""
executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="measuring")


def at_hand(future: Future[T]) -> T | None:
    """What was measured, if it is there or comes within AT_ONCE."""
    wait([future], AT_ONCE)
    return future.result() if future.done() else None


behind = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lecture")
"""What is trained while a question is on the screen, one after the other: clicks go on meanwhile."""
