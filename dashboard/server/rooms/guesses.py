"""How long an address waits that tries one code after the other, in search of a room."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from dashboard.server.rooms.limits import Limits

FIRST = 1.0
"""Seconds of the first wait. Each further one is twice as long, up to Limits.wait."""


@dataclass
class _Tried:
    count: float = 0.0
    """How many wrong codes; it goes down by one in every Limits.wait seconds."""
    at: float = 0.0
    until: float = 0.0
    codes: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """The last wrong ones."""


class Guesses:
    """The wrong codes of each address.

    The first `Limits.wrong_codes` cost nothing, which is enough for a lecture hall that mistypes; then each costs a
    wait, which grows to `Limits.wait` = 30 s. In any t seconds an address so tries 26 + t / 30 codes at most. A code
    that was wrong a moment ago is no guess: when a room ends, all who followed it ask for it once more. So many are
    remembered as rooms may end at once.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._tried: OrderedDict[str, _Tried] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tried)

    def wait(self, sender: str, code: str) -> float:
        """Seconds until an address may try a code; 0 where it may now."""
        tried = self._tried.get(sender)
        return 0.0 if tried is None or code in tried.codes else max(0.0, tried.until - self._clock())

    def wrong(self, sender: str, code: str) -> None:
        """Count a code that was tried and is that of no room."""
        tried = self._tried.setdefault(sender, _Tried())
        self._tried.move_to_end(sender)
        if len(self._tried) > self._limits.kept:
            self._tried.popitem(last=False)
        if code in tried.codes:
            return
        tried.codes[code] = None
        if len(tried.codes) > self._limits.rooms:
            tried.codes.popitem(last=False)
        now, longest = self._clock(), self._limits.wait
        tried.count = max(0.0, tried.count - (now - tried.at) / longest) + 1
        tried.at = now
        over = tried.count - self._limits.wrong_codes
        if over > 0:
            tried.until = now + min(longest, FIRST * 2 ** (over - 1))
