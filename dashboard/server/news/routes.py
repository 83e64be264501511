"""The socket over which a page hears of news: one a tab, open while something is followed.

The browser says what it follows, {"follow": [token, …]}, and is told {token: version, …} of what has changed, null of
what it cannot be told. A foreign page is turned away before (server/guard.py), as is everybody while descriptors are
scarce (server/descriptors.py): a page without this socket asks by the clock.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass

import anyio
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from dashboard.server.entrance import visitor_of
from dashboard.server.news.watcher import Follower, Watcher
from dashboard.server.rooms.limits import Bucket
from dashboard.server.rooms.voters import sender_of

PATH = "/news"
POLICY, TOO_BIG, LATER = 1008, 1009, 1013
"""The statuses with which a WebSocket is closed (RFC 6455, section 7.4.1)."""


@dataclass(frozen=True)
class Limits:
    """The bounds of all sockets of a server. Times are seconds."""

    sockets: int = 1_000
    sockets_of_an_address: int = 400
    """A lecture hall may be behind one address."""
    followed: int = 32
    """Things, by one socket."""
    message: int = 4_096
    """Characters."""
    messages: float = 10.0
    """A second, from one socket."""
    messages_at_once: int = 100
    silence: float = 10.0
    """After which a socket is closed that follows nothing of which it could be told."""


def routes(base: str, limits: Limits | None = None, watcher: Watcher | None = None) -> list[BaseRoute]:
    """The route under `base`, "" or "/lab"."""
    return [WebSocketRoute(f"{base}{PATH}", Desk(limits or Limits(), watcher or Watcher()).answer)]


class Desk:
    """Where sockets are answered, and counted."""

    def __init__(self, limits: Limits, watcher: Watcher) -> None:
        self._limits, self._watcher = limits, watcher
        self._sockets: Counter[str] = Counter()

    async def answer(self, socket: WebSocket) -> None:
        """Tell a socket of what it follows, until it goes."""
        sender, limits = sender_of(socket.scope), self._limits
        if self._sockets.total() >= limits.sockets or self._sockets[sender] >= limits.sockets_of_an_address:
            await socket.close(LATER)
            return
        self._sockets[sender] += 1
        try:
            await socket.accept()
            follower = Follower(visitor_of(socket.scope))
            with self._watcher.following(follower):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._tell, socket, follower)
                    status = await self._listen(socket, follower)
                    tasks.cancel_scope.cancel()
            if status:
                await socket.close(status)
        finally:
            self._sockets[sender] -= 1
            self._sockets += Counter()  # an address that has none is forgotten

    async def _listen(self, socket: WebSocket, follower: Follower) -> int:
        """Follow what the browser says; the status with which it is to be closed, 0 where it has gone."""
        bucket = Bucket(self._limits.messages, self._limits.messages_at_once)
        while True:
            try:
                said = await socket.receive_text()
            except KeyError:  # bytes are no text
                return POLICY
            except (WebSocketDisconnect, RuntimeError):
                return 0
            if said and len(said) > self._limits.message:
                return TOO_BIG
            tokens = self._tokens(said)
            if tokens is None or not bucket.take():
                return POLICY
            follower.follow(tokens)
            self._watcher.look_now()

    def _tokens(self, said: str) -> list[str] | None:
        """What is to be followed; None where that is not said."""
        try:
            tokens = json.loads(said)["follow"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        good = isinstance(tokens, list) and len(tokens) <= self._limits.followed
        return tokens if good and all(isinstance(token, str) for token in tokens) else None

    async def _tell(self, socket: WebSocket, follower: Follower) -> None:
        """Tell of what has changed, again and again; close where there is nothing to be told."""
        while True:
            quiet = self._limits.silence if follower.follows_nothing else None
            try:
                if news := await asyncio.wait_for(follower.news(), quiet):
                    await socket.send_text(json.dumps(news))
            except TimeoutError:
                if follower.follows_nothing:
                    await socket.close()  # the listener hears that it has gone
                    return
            except (WebSocketDisconnect, RuntimeError):  # it has gone, and the listener hears of it
                return
