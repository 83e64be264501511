"""How much a room may hold and how often it may be asked; and what is said to who asks for more."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

HOUR = 3600.0


@dataclass(frozen=True)
class Limits:
    """The bounds of all rooms of a server. Times are seconds, sizes bytes, rates per second."""

    life: float = 4 * HOUR
    """After which a room ends by itself."""
    rooms: int = 64
    """Open at the same time."""
    openings: float = 10 / 60
    openings_at_once: int = 10
    followers: int = 1_000
    """Of a room."""
    documents: int = 3
    """That are kept: the present one and those before it."""
    compressed: int = 8_000_000
    inflated: int = 40_000_000
    values: int = 2_000_000
    """Numbers, texts, lists and so on in a document: reading one must not take all memory, whatever is sent."""
    shows: float = 10.0
    """Documents, of a room."""
    shows_at_once: int = 10
    vote: int = 16_384
    voters: int = 2_000
    """Of a question."""
    votes: float = 100.0
    """Of a room."""
    votes_at_once: int = 500
    questions: int = 8
    """Whose votes are kept: the present one and those before it, for a lecturer goes back, too."""
    words: int = 500
    """Characters."""
    silence: float = 15.0
    """After which an event stream sends a comment, so that nothing on the way takes it for dead."""


class Refused(Exception):
    """What is not done, in one sentence for the reader, with the status of HTTP that says it to programs."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Bucket:
    """A token bucket: `burst` at once, and `rate` a second in the long run."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens, self._at = float(burst), clock()

    def take(self) -> bool:
        """Whether there is a token; it is taken."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + self._rate * (now - self._at))
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def no_room(code: str) -> Refused:
    """Said of a room that never was and of one that is over; nothing is known of either."""
    return Refused(404, f"There is no room {code}. It may be over: rooms end after four hours.")
