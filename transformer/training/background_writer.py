"""A thread that writes files, so that whoever computes does not wait for the disk."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

MOST = 4
"""Writings that wait at once, at most: each holds what it is to write in memory."""


class BackgroundWriter:
    """Writes one thing after the other, in the order in which they were given.

    What fails is raised to whoever gives the next thing, or waits for all of them. Use it in a with statement: at its
    end all is written.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._waiting: deque[Future[object]] = deque()

    def __enter__(self) -> BackgroundWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with contextlib.nullcontext() if kind is None else contextlib.suppress(Exception):  # the first fault counts
                self.wait()
        finally:
            self._thread.shutdown()

    def add(self, write: Callable[[], object]) -> None:
        """Write it as soon as all before it are. Raises what an earlier one raised."""
        while self._waiting and (self._waiting[0].done() or len(self._waiting) >= MOST):
            self._waiting.popleft().result()
        self._waiting.append(self._thread.submit(write))

    def wait(self) -> None:
        """Return when all is written. Raises what one of them raised."""
        while self._waiting:
            self._waiting.popleft().result()
