"""The table of parts: name, question, what answers it, and the functions that its page shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dashboard.models.model import Model


@dataclass(frozen=True)
class Part:
    """A part of the page: what it asks, and the function that draws the answer and returns the page's title."""

    name: str
    """In the link, as "norm"."""
    title: str
    """On its button."""
    question: str
    answer: Callable[[Model], str]
    code: tuple[str, ...]
    """Paths of the functions that "show the code" prints."""


PARTS: tuple[Part, ...] = ()
