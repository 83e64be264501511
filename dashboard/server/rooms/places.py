"""Where the rooms of this server live: in its own process, or in the Redis that ATTENTION_LAB_ROOMS names."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from types import FrameType

from dashboard.server.rooms.limits import Limits
from dashboard.server.rooms.memory import MemoryRooms
from dashboard.server.rooms.rooms import Rooms
from transformer.foundation.checks import ConfigError


@cache
def place() -> Rooms:
    """The place of this server's rooms. Raises ConfigError where ATTENTION_LAB_ROOMS cannot be used."""
    return place_at(os.environ.get("ATTENTION_LAB_ROOMS", ""), Limits())


def place_at(address: str, limits: Limits) -> Rooms:
    """Rooms at an address, or in this process where it is empty. Raises ConfigError."""
    if not address:
        return MemoryRooms(limits)
    try:
        from dashboard.server.rooms.redis import RedisRooms
    except ModuleNotFoundError:
        raise ConfigError("ATTENTION_LAB_ROOMS needs the package redis: pip install 'attention-lab[rooms]'.") from None
    try:
        return RedisRooms(address, limits)
    except ValueError:  # which does not repeat it: it may hold a password
        raise ConfigError("ATTENTION_LAB_ROOMS must be a Redis's address, such as redis://localhost:6379/0.") from None


@asynccontextmanager
async def running(rooms: Rooms) -> AsyncIterator[None]:
    """Let followers go as soon as the server is told to end.

    uvicorn waits for every answer that is under way before it says to anybody that it ends, and an event stream is
    under way as long as its room is open (github.com/Kludex/uvicorn/issues/451).
    """
    loop = asyncio.get_running_loop()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def end(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(rooms.let_go)
        handler = handlers[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    if threading.current_thread() is threading.main_thread():  # no other may
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if signal.getsignal(number) is end:
                signal.signal(number, handler)
        await rooms.stop()
