"""What a part of a page shows and what may change: its version grows by one with every change that is seen."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from itertools import count
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from dashboard.server.roles import Visitor

Look = Callable[[], Any]
"""Returns a value that is another one where there is something new. It is called in a thread that runs no page."""


class Followed:
    """Something that a browser may follow, by a token that nobody can guess, for as long as a page holds this object.

    `look` is compared with what it returned before. `visitor` is who looks at the page: nobody else gets an answer.
    """

    def __init__(self, look: Look, visitor: Visitor) -> None:
        self.look, self.visitor = look, visitor
        self.token = secrets.token_urlsafe(16)
        self.number = next(_numbers)
        """By which a page tells it from all others."""
        self._lock = Lock()
        self._version, self._found = 0, None
        _followed[self.token] = self

    @property
    def version(self) -> int:
        """The version as things stand now."""
        return self.compare(value_of(self.look))

    def compare(self, found: Any) -> int:
        """The version once this was found: one more than before where it is another value."""
        with self._lock:
            if not self._version or found != self._found:
                self._version, self._found = self._version + 1, found
            return self._version


def value_of(look: Look) -> Any:
    """What a look returns; where it fails, why: the page that is drawn anew will say it."""
    try:
        return look()
    except Exception as error:
        return type(error).__name__, str(error)


def followed_by(token: str, visitor: Visitor) -> Followed | None:
    """What a visitor follows under a token; None where there is no such thing, or no longer, or it is another's.

    A guest whose browser keeps no cookies has no name here.
    """
    found = _followed.get(token)
    if found is None or found.visitor.role != visitor.role:
        return None
    return found if visitor.name in ("", found.visitor.name) else None


_numbers = count(1)
_followed: WeakValueDictionary[str, Followed] = WeakValueDictionary()
