"""File descriptors: each connection takes one, and a process has only so many. Nobody is let in with the last ones.

Where they run out, all that opens a file, a socket or a process fails at once: pages, trainings, whoever is here.
So some are kept for those who are, and the next visitor is told.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import socket
import sys
from itertools import cycle
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dashboard.server.sockets import OPEN

KEPT = 64
"""Descriptors that no visitor gets: training processes, files of runs and requests under way take them."""
SCARCE = 128
"""So many or fewer are left: people should be sent elsewhere."""
OWN = 32
"""The last ones, which no connection gets at all: what the server opens itself does not fail for a rush at its door."""
MACOS = 10_240
"""The most that macOS takes for a soft limit where it names no hard one (OPEN_MAX)."""
AFTER = 30
"""Seconds after which a visitor may ask again."""
FULL = "This server is full: it has no room for another visitor. Try again when others have left."
VISITS = ("text/html", "text/event-stream")
"""What somebody asks for who comes to stay: a page, or the steps of a room. All else belongs to who is here."""


def raise_limit() -> None:
    """Let this process open as many files as it may: its soft limit becomes the hard one, where there is any."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, MACOS):
        if soft != resource.RLIM_INFINITY and (wanted == resource.RLIM_INFINITY or wanted > soft):
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                return


def left() -> float:
    """How many more this process can open; infinite where nothing limits or lists them."""
    if sys.platform == "win32" or not os.path.isdir(OPEN):
        return math.inf
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        # Linux says how many there are since 6.2; to list ten thousand takes 30 ms.
        taken = os.stat(OPEN).st_size if sys.platform == "linux" else 0
        return math.inf if soft == resource.RLIM_INFINITY else soft - (taken or len(os.listdir(OPEN)))
    except OSError:  # not even one to list them with
        return 0


def leave_the_last_ones() -> None:
    """Let connections wait that would take the last descriptors, until there are more: asyncio asks every second.

    A browser opens several at once, and each is taken in before anybody knows what it wants.
    """
    accept = socket.socket.accept
    # EMFILE has asyncio pause, and BlockingIOError has it end its round: Python 3.11 goes on and on in it.
    refusals = cycle((errno.EMFILE, errno.EWOULDBLOCK))

    def accept_while_there_is_room(listening: socket.socket) -> tuple[socket.socket, Any]:
        if left() <= OWN:
            raise OSError(number := next(refusals), os.strerror(number))
        return accept(listening)

    socket.socket.accept = accept_while_there_is_room  # type: ignore[method-assign, assignment]


class Door:
    """ASGI middleware that turns away whoever comes to stay while too few descriptors are left."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_visit(scope) or left() > KEPT:
            await self.app(scope, receive, send)
        elif scope["type"] == "http" or "websocket.http.response" in scope.get("extensions", {}):
            await PlainTextResponse(FULL, 503, {"Retry-After": str(AFTER), "Cache-Control": "no-store"})(
                scope, receive, send
            )
        else:
            await send({"type": "websocket.close", "code": 1013, "reason": FULL})


def _is_visit(scope: Scope) -> bool:
    if scope["type"] == "websocket":
        return True
    accepted = Headers(scope=scope).get("accept", "") if scope["type"] == "http" else ""
    return any(each in accepted for each in VISITS)
