"""The one thread that looks at all that is followed. It begins with the first follower and ends with the last."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from dashboard.server.news.followed import Look, followed_by, value_of
from dashboard.server.roles import Visitor

TICK = 0.1
"""Seconds between two looks."""

News: TypeAlias = dict[str, int | None]
"""The version of each thing that is followed, by its token; None where nothing can be told of it."""


class Follower:
    """A socket that is told of news; what it has not been told yet is kept for it, the newest only."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._wanted: tuple[str, ...] = ()
        self._found: News = {}
        self._told: News = {}

    def follow(self, tokens: Iterable[str]) -> None:
        """Follow these from now on, and nothing else."""
        self._wanted = tuple(tokens)
        self._found, self._told = (
            {token: version for token, version in each.items() if token in self._wanted}
            for each in (self._found, self._told)
        )

    def look(self, seen: dict[Look, Any]) -> None:
        """Look at what is followed; what `seen` holds was looked at in this round already. In the watcher's thread."""
        wanted, found = self._wanted, News()
        for token in wanted:
            each = followed_by(token, self._visitor)
            if each is not None and each.look not in seen:
                seen[each.look] = value_of(each.look)
            found[token] = None if each is None else each.compare(seen[each.look])
        with contextlib.suppress(RuntimeError):  # its loop has ended, as when the server stops
            self._loop.call_soon_threadsafe(self._hear, wanted, found)

    def _hear(self, wanted: tuple[str, ...], found: News) -> None:
        if wanted is self._wanted:
            self._found = found
            if found != self._told:
                self._woken.set()

    @property
    def follows_nothing(self) -> bool:
        """Is there nothing of which this one can be told?"""
        return all(version is None for version in self._found.values())

    async def news(self) -> News:
        """What has changed since this was called last; waits until something has."""
        await self._woken.wait()
        self._woken.clear()
        news = {token: version for token, version in self._found.items() if self._told.get(token, ...) != version}
        self._told.update(news)
        return news


class Watcher:
    """Looks at what its followers follow, every TICK, once at each thing however many follow it."""

    def __init__(self, tick: float = TICK) -> None:
        self._tick = tick
        self._followers: set[Follower] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._followers)

    @property
    def looks(self) -> bool:
        """Is anything looked at?"""
        return self._thread is not None

    @contextmanager
    def following(self, follower: Follower) -> Iterator[None]:
        """Have this one told of news meanwhile."""
        with self._changed:
            self._followers.add(follower)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="news", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._followers.discard(follower)
                self._changed.notify()

    def look_now(self) -> None:
        """Look at once: somebody follows something else."""
        with self._changed:
            self._changed.notify()

    def _watch(self) -> None:
        while True:
            with self._changed:
                if not self._followers:
                    self._thread = None
                    return
                followers = list(self._followers)
            seen: dict[Look, Any] = {}
            for each in followers:
                each.look(seen)
            with self._changed:
                self._changed.wait(self._tick)
