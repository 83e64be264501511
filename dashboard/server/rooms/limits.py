"""How much a room may hold and how often it may be asked; and what is said to who asks for more."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
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
    """From an address."""
    openings_at_once: int = 10
    followers: int = 1_000
    """Of a room."""
    followers_of_an_address: int = 400
    """Of a room. A lecture hall may be behind one address; nobody needs to be more than a lecture hall."""
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
    voters_of_an_address: int = 400
    """Of a question."""
    cookies: float = 20.0
    """By which new voters are known, from an address."""
    cookies_at_once: int = 400
    votes: float = 100.0
    """In a room, from an address."""
    votes_at_once: int = 500
    votes_of_a_voter: float = 1.0
    votes_of_a_voter_at_once: int = 10
    questions: int = 8
    """Whose votes are kept: the present one and those before it, for a lecturer goes back, too."""
    words: int = 500
    """Characters."""
    silence: float = 15.0
    """After which an event stream sends a comment, so that nothing on the way takes it for dead."""
    wrong_codes: int = 20
    """That an address may try before it has to wait."""
    wait: float = 30.0
    """The longest wait between two wrong codes."""
    kept: int = 4_096
    """Addresses, voters or rooms of which is known what they did last, in each table of them."""


class Refused(Exception):
    """What is not done, in one sentence for the reader, with the status of HTTP that says it to programs."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, dict(headers or {})


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


class Buckets:
    """A token bucket for each key. Of more than `most` keys, the one that was asked for longest ago is forgotten."""

    def __init__(self, rate: float, burst: int, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._most, self._clock = rate, burst, most, clock
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: str) -> bool:
        """Whether there is a token for this key; it is taken."""
        bucket = self._buckets.setdefault(key, Bucket(self._rate, self._burst, self._clock))
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return bucket.take()


def no_room(code: str) -> Refused:
    """Said of a room that never was and of one that is over; nothing is known of either."""
    return Refused(404, f"There is no room {code}. It may be over: rooms end after four hours.")
