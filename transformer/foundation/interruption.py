"""Long work that can be interrupted: whoever begins it says whether it is still wanted, and its loops ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Interrupted(BaseException):
    """Nobody wants the result of this work any more. No handler of errors takes it for one."""


def _always() -> bool:
    return True


_wanted: ContextVar[Callable[[], bool]] = ContextVar("wanted", default=_always)


@contextmanager
def interruptible(wanted: Callable[[], bool]) -> Iterator[None]:
    """Let the work in this block, in this thread, go on only while `wanted()` is true."""
    before = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(before)


def go_on() -> None:
    """Go on with the next piece of long work. Raises Interrupted where the work is no longer wanted."""
    if not _wanted.get()():
        raise Interrupted
