"""A part of a page that is drawn anew when there is news of what it shows."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard.components.news import ask_for_news
from dashboard.server.news import Followed
from dashboard.view import clicks, permission

Every = float | None | Callable[[], float | None]


def redraw_on_news(
    draw: Callable[[], object],
    *,
    every: Every,
    news: Callable[[], object] | None = None,
    behind: Callable[[], bool] = lambda: False,
    awaits: bool = False,
) -> None:
    """Draw something in a fragment of its own, and again when `news` returns another value than before.

    That is at most `every` so many seconds; None is only after a click in it, and a function is asked at each drawing.
    `news` is called in another thread ten times a second, so it is quick, and looks neither at the session nor at the
    page. Without it the browser asks every so many seconds. What is `behind` when it is drawn is drawn once more, for
    which no socket is opened. What `awaits` an end is not written into a hand-out before that.
    """
    st.fragment(_draw)(draw, every, Followed(news or _nothing, permission.visitor()), news is not None, behind, awaits)


def _draw(
    draw: Callable[[], object],
    every: Every,
    followed: Followed,
    told: bool,
    behind: Callable[[], bool],
    awaits: bool,
) -> None:
    version = followed.version  # what comes while it is drawn is newer
    told = not behind() and told  # nobody has to tell what is known
    seconds = every() if callable(every) else every
    try:
        draw()
    except Exception:
        _ask(followed, told, version, seconds, awaits)
        raise
    clicks.end_part()
    # Last: else all else would be at other places once nothing is followed.
    _ask(followed, told, version, seconds, awaits)


def _ask(followed: Followed, told: bool, version: int, seconds: float | None, awaits: bool) -> None:
    if seconds is not None:
        ask_for_news(followed.number, followed.token if told else None, version, seconds, awaits)


def _nothing() -> None:
    """What is looked at where nothing tells of news."""
