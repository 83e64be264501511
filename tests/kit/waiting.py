"""Waiting for a state, however busy the machine; and a clock that goes on only while somebody sleeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 120.0
"""Seconds for which anything is waited for: a busy machine is not a broken one."""


def wait_for(what: str, look: Callable[[], T], is_it: Callable[[T], object] = bool) -> T:
    """What `look` sees once `is_it`, which is a true value unless said otherwise.

    Raises AssertionError when it does not come within PATIENCE: it says `what` was waited for, and what was seen last.
    """
    deadline = time.monotonic() + PATIENCE
    while not is_it(seen := look()):
        assert time.monotonic() < deadline, f"not within {PATIENCE:g} s: {what}. Seen last: {seen!r}"
        time.sleep(0.01)
    return seen


@asynccontextmanager
async def in_time(what: str) -> AsyncIterator[None]:
    """What is awaited inside comes within PATIENCE. Raises AssertionError, which says `what`, when it does not."""
    try:
        async with asyncio.timeout(PATIENCE):
            yield
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE:g} s: {what}") from None


class Clock:
    """Stands in for a module's `time`. Each sleep takes the next step of `script`, and no time but its own passes."""

    def __init__(self, script: Iterator[object] | None = None) -> None:
        self.now = 0.0
        self.script = script or iter(())

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        next(self.script, None)
