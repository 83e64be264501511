"""What a room is, and what every place where rooms can live does: this process (memory.py) or Redis (redis.py)."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Protocol

from dashboard.server.rooms.limits import Limits

LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""Of codes: none that looks like another, so neither 0 and O nor 1, I and L."""
LENGTH = 4


def new_code() -> str:
    """One of 31⁴ = 923,521."""
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def digest(key: str) -> str:
    """What is kept of a room's key: SHA-256, in hex."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True)
class Step:
    """What a room shows: a document by its SHA-256 in hex, the question asked, and whether its answer is shown."""

    document: str = ""
    question: str = ""
    shown: bool = False


@dataclass(frozen=True)
class Room:
    """A room as it is at this moment."""

    code: str
    lock: str
    """The digest of its key."""
    step: Step
    kind: str
    """Which answers the question takes, as the lecturer says it (votes.KIND); empty: such as the first one."""

    def opened_by(self, key: str) -> bool:
        return secrets.compare_digest(self.lock, digest(key))

    def sign(self, word: str) -> str:
        """What only who knows this room's lock can make of a word: HMAC-SHA256 (RFC 2104), in hex.

        Servers that share a room share its lock, whatever else they share; and signatures end with the room.
        """
        return hmac.new(self.lock.encode(), word.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Opened:
    """A new room: its code for everybody, its key for who opened it, and when it ends, in seconds since 1970."""

    code: str
    key: str
    ends: float


@dataclass(frozen=True)
class Vote:
    """An answer of a voter: its shape as `votes.shape` says it, and itself, as JSON."""

    question: str
    voter: str
    sender: str
    """The address that it came from, as `voters.pseudonym` calls it."""
    shape: str
    answer: str


@dataclass(frozen=True)
class Ballot:
    """The votes on the present question, the newest last, and how many follow the room."""

    question: str
    kind: str
    """As of the room."""
    followers: int
    answers: list[str] = field(default_factory=list)
    """As JSON."""


class Channel:
    """The newest step of a room, for all in this process who wait for it. Whoever is slow misses the steps between."""

    def __init__(self, step: Step | None) -> None:
        self._step = step
        self._ended = False
        self._news = asyncio.Event()

    @property
    def step(self) -> Step | None:
        """None once the room is over."""
        return self._step

    @property
    def ended(self) -> bool:
        """Whether nothing more will be told here, though the room may go on."""
        return self._ended

    def tell(self, step: Step | None) -> None:
        """Wake everybody who waits, if this is news."""
        if step != self._step:
            self._step = step
            self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def changed(self, seen: Step | None, patience: float) -> bool:
        """Wait until the step is another one than was seen, or no more will come, for so many seconds at most.

        Says whether the step is another one.
        """
        if self._step == seen and not self._ended:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._news.wait()
        return self._step != seen


class Rooms(Protocol):
    """A place where rooms live. Every method raises Refused: 404 where there is no such room, or as it says."""

    limits: Limits

    async def open(self) -> Opened:
        """A new room. Refused with 429 when there are as many as there may be."""

    async def look(self, code: str) -> Room:
        """A room as it is."""

    async def show(self, code: str, step: Step, kind: str, document: bytes) -> int:
        """Show a step, whose document is these bytes. Returns how many follow."""

    async def document(self, code: str, name: str) -> bytes:
        """One of the last documents by its SHA-256. Refused with 404 when it is no longer kept."""

    async def vote(self, code: str, vote: Vote) -> None:
        """Count a vote in place of the voter's earlier one.

        Refused with 409 when its question is not asked now, 400 when its shape is not the first one's, 429 when there
        are as many voters as there may be, at all or from this sender's address.
        """

    async def ballot(self, code: str) -> Ballot:
        """The votes on the present question."""

    async def close(self, code: str) -> None:
        """End a room and forget all of it."""

    def follow(self, code: str, sender: str) -> AbstractAsyncContextManager[Channel]:
        """Follow a room; whoever is in here is counted.

        Refused with 503 when there are as many as there may be, with 429 when there are from this sender's address.
        """

    def let_go(self) -> None:
        """End what followers hear, for the server is about to end. What outlives the server stays as it is."""

    async def stop(self) -> None:
        """Let go, and close what is open towards others."""


# What both places refuse, in the same words.

FULL_HOUSE = "There are as many rooms open on this server as there may be. Close one, or wait until one ends."
FULL_ROOM = "As many follow this room as can. Try again when somebody has left."
NOT_ASKED = "This question is not asked now."
ALREADY_SHOWN = "The answer is shown already: votes on this question are closed."
OTHER_SHAPE = "This question takes another kind of answer."
MANY_HERE = "As many follow this room from your network as can. Try again when somebody has left."
MANY_VOTERS = "As many have voted on this question as can."
MANY_VOTERS_HERE = "As many have voted on this question from your network as can."
OLD_DOCUMENT = "This document is no longer kept. Follow the room to get the present one."
