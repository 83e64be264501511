"""Answers to clicks: whose rerun it is, and that each is given once."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import NoReturn, ParamSpec

import streamlit as st

from dashboard.server.streamlit_private import draws_a_part, is_asked_for

P = ParamSpec("P")
ECHO = 0.1
"""Seconds within which a click can be reported a second time."""


def touch() -> None:
    """Say that this rerun comes from the page itself, not from the browser's address bar."""
    st.session_state.touched = True


def end_part() -> None:
    """End a run of a part of the page: what was touched in it leaves the next address to be read, and itself to be
    written."""
    if draws_a_part() and st.session_state.pop("touched", False):
        st.session_state.write = True


def again() -> NoReturn:
    """Draw everything anew by itself: what was said stays, and a click that was made meanwhile is not taken back."""
    st.session_state.notices = [*st.session_state.said, *st.session_state.get("notices", [])]
    touch()  # the rerun may come with the URL of before that click
    st.rerun()


def once(answer: Callable[P, None]) -> Callable[P, None]:
    """An answer to a click, deaf for ECHO seconds after it is given: a click during a rerun may be reported twice.

    The second report waits for the end of the first answer, however long that takes; so the count begins there.
    """

    @wraps(answer)
    def answer_once(*args: P.args, **kwargs: P.kwargs) -> None:
        touch()
        given = st.session_state.setdefault("answered", {})
        if time.monotonic() - given.get(answer.__qualname__, -ECHO) < ECHO:
            return
        try:
            answer(*args, **kwargs)
        finally:
            given[answer.__qualname__] = time.monotonic()

    return answer_once


def in_time(answer: Callable[P, None]) -> Callable[P, None]:
    """An answer to a menu or a field, deaf to what is said of it with the request of another part of the page.

    The browser sends every widget's value with each request, also with that of a live view that was on its way while
    all was drawn anew: what it then says of a widget is what was chosen before, and no choice. A choice comes with the
    request of the fragment in which its widget stands, or of everything.
    """

    @wraps(answer)
    def answer_in_time(*args: P.args, **kwargs: P.kwargs) -> None:
        if is_asked_for():
            answer(*args, **kwargs)

    return answer_in_time
