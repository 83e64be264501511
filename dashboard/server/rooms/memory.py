"""Rooms that live in this process and end with it: the default, where one server serves everybody."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from dashboard.server.rooms.limits import Limits, Refused, no_room
from dashboard.server.rooms.rooms import (
    ALREADY_SHOWN,
    FULL_HOUSE,
    FULL_ROOM,
    MANY_HERE,
    MANY_VOTERS,
    MANY_VOTERS_HERE,
    NOT_ASKED,
    OLD_DOCUMENT,
    OTHER_SHAPE,
    Ballot,
    Channel,
    Opened,
    Room,
    Step,
    Vote,
    digest,
    new_code,
)


@dataclass
class _Votes:
    shape: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    """By voter, the newest last."""
    voters: Counter[str] = field(default_factory=Counter)
    """How many of them, by the address of their first vote."""


@dataclass
class _Kept:
    lock: str
    end: asyncio.TimerHandle
    step: Step = field(default_factory=Step)
    kind: str = ""
    channel: Channel = field(default_factory=lambda: Channel(Step()))
    followers: Counter[str] = field(default_factory=Counter)
    """How many, by address."""
    documents: dict[str, bytes] = field(default_factory=dict)
    """By SHA-256, the newest last."""
    votes: dict[str, _Votes] = field(default_factory=dict)
    """By question, the newest last."""


class MemoryRooms:
    """Rooms in a dictionary. Nothing in here waits, so every method is done before another one begins."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._rooms: dict[str, _Kept] = {}

    async def open(self) -> Opened:
        if len(self._rooms) >= self.limits.rooms:
            raise Refused(429, FULL_HOUSE)
        code = new_code()
        while code in self._rooms:
            code = new_code()
        key = secrets.token_urlsafe()
        end = asyncio.get_running_loop().call_later(self.limits.life, self._end, code)
        self._rooms[code] = _Kept(digest(key), end)
        return Opened(code, key, time.time() + self.limits.life)

    async def look(self, code: str) -> Room:
        kept = self._of(code)
        return Room(code, kept.lock, kept.step, kept.kind)

    async def show(self, code: str, step: Step, kind: str, document: bytes) -> int:
        kept = self._of(code)
        kept.documents.pop(step.document, None)
        kept.documents[step.document] = document
        _keep_newest(kept.documents, self.limits.documents)
        if step.question:
            kept.votes[step.question] = kept.votes.pop(step.question, _Votes())
            _keep_newest(kept.votes, self.limits.questions)
        kept.step, kept.kind = step, kind
        kept.channel.tell(step)
        return kept.followers.total()

    async def document(self, code: str, name: str) -> bytes:
        found = self._of(code).documents.get(name)
        if found is None:
            raise Refused(404, OLD_DOCUMENT)
        return found

    async def vote(self, code: str, vote: Vote) -> None:
        kept = self._of(code)
        if not vote.question or vote.question != kept.step.question:
            raise Refused(409, NOT_ASKED)
        if kept.step.shown:
            raise Refused(409, ALREADY_SHOWN)
        votes = kept.votes[vote.question]
        if votes.shape not in ("", vote.shape):
            raise Refused(400, OTHER_SHAPE)
        if vote.voter not in votes.answers:
            if len(votes.answers) >= self.limits.voters:
                raise Refused(429, MANY_VOTERS)
            if votes.voters[vote.sender] >= self.limits.voters_of_an_address:
                raise Refused(429, MANY_VOTERS_HERE)
            votes.voters[vote.sender] += 1
        votes.shape = vote.shape
        votes.answers.pop(vote.voter, None)
        votes.answers[vote.voter] = vote.answer

    async def ballot(self, code: str) -> Ballot:
        kept = self._of(code)
        votes = kept.votes.get(kept.step.question, _Votes())
        return Ballot(kept.step.question, kept.kind, kept.followers.total(), list(votes.answers.values()))

    async def close(self, code: str) -> None:
        self._of(code).end.cancel()
        self._end(code)

    @asynccontextmanager
    async def follow(self, code: str, sender: str) -> AsyncIterator[Channel]:
        kept = self._of(code)
        if kept.followers.total() >= self.limits.followers:
            raise Refused(503, FULL_ROOM)
        if kept.followers[sender] >= self.limits.followers_of_an_address:
            raise Refused(429, MANY_HERE)
        kept.followers[sender] += 1
        try:
            yield kept.channel
        finally:
            kept.followers[sender] -= 1
            if not kept.followers[sender]:
                del kept.followers[sender]

    def let_go(self) -> None:
        for code in list(self._rooms):
            self._rooms[code].end.cancel()
            self._end(code)

    async def stop(self) -> None:
        self.let_go()

    def _of(self, code: str) -> _Kept:
        if code not in self._rooms:
            raise no_room(code)
        return self._rooms[code]

    def _end(self, code: str) -> None:
        self._rooms.pop(code).channel.tell(None)


def _keep_newest(found: dict[str, Any], count: int) -> None:
    while len(found) > count:
        del found[next(iter(found))]
