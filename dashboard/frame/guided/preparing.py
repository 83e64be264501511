"""The next pages of a lecture, opened for nobody while one speaks: what they measure is there when they are asked for.

One page of the server at a time is opened so, of each lecture at most the next AHEAD, each once. It waits at every
element for as long as a page is drawn for somebody, and ends where nobody is at the step any more.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlencode
from uuid import uuid4

import streamlit as st

from dashboard.frame.guided import lecture
from dashboard.lectures.lecture import Step
from dashboard.lectures.shelf import lectures
from dashboard.lectures.values import model_of
from dashboard.models.background import Lane
from dashboard.models.model import Model
from dashboard.server import background
from dashboard.server.streamlit_private import Visit, is_served, visiting
from dashboard.view import session
from dashboard.view.pages import OVERVIEW, PAGES, Page

AHEAD = 2
"""Steps after the present one whose pages are opened."""
MOST = 500
"""Pages that are remembered as opened; then what they measured may be forgotten as well."""
PATIENCE = 600.0
"""Seconds without a rerun of a session after which it is taken for left."""
PAUSE = 0.05
"""Seconds between two looks whether a page is drawn for somebody."""
_lane = Lane(1)
_lock = threading.Lock()


@dataclass(frozen=True)
class Ahead:
    """A page that comes next in somebody's lecture."""

    address: str
    query: str
    model: Model


_wanted: OrderedDict[str, tuple[float, tuple[Ahead, ...]]] = OrderedDict()
"""What comes next for each session, by its key, and when it was said; the latest last."""
_opened: OrderedDict[Ahead, None] = OrderedDict()
"""What was opened, the latest last."""


def ahead(page: Page) -> None:
    """Have the next pages of the lecture opened that is followed on this page; none where it is left or explored."""
    if background.torch() is None or not is_served():
        return
    step = lecture.followed(page)
    key = st.session_state.setdefault("prepares", uuid4().hex)
    if step is None:
        want(key, (), visiting())
        return
    view = session.settings()
    steps = lectures().files[view.lecture].steps
    want(key, tuple(_pages(steps[view.lecture_step : view.lecture_step + AHEAD], view.lecture)), visiting())


def _pages(steps: Sequence[Step], name: str) -> Sequence[Ahead]:
    """The pages of these steps, as a reader of the lecture opens them."""
    every = lectures().files[name].steps
    found = []
    for step in steps:
        with suppress(ValueError):  # a run that is not here
            model = model_of(step.view, session.choices())
            view = replace(step.view, lecture=name, lecture_step=every.index(step) + 1)
            address = "" if PAGES[step.page] is OVERVIEW else step.page
            found.append(Ahead(address, urlencode(view.to_query()), model))
    return found


def want(key: str, pages: tuple[Ahead, ...], visit: Visit) -> None:
    """Let these pages be opened next for a session, and none of those that it wanted before."""
    with _lock:
        _wanted[key] = time.monotonic(), pages
        _wanted.move_to_end(key)
        while len(_wanted) > MOST:
            _wanted.popitem(last=False)
        waits = any(each not in _opened for each in pages)
    if waits:
        _lane.submit(_open, visit)


def _open(visit: Visit) -> None:
    """Open what is wanted and has not been opened, that of the latest session first."""
    while (page := _next()) is not None:
        if visit(page.address, page.query, partial(_may, page)):
            with _lock:
                _opened[page] = None
                while len(_opened) > MOST:
                    _opened.popitem(last=False)


def _next() -> Ahead | None:
    with _lock:
        pages = [each for _, pages in reversed(_now()) for each in pages]
    return next((each for each in pages if each not in _opened), None)


def _now() -> list[tuple[float, tuple[Ahead, ...]]]:
    """What sessions want that are still there."""
    return [(since, pages) for since, pages in _wanted.values() if time.monotonic() - since < PATIENCE]


def _may(page: Ahead) -> bool:
    """Wait until no page is drawn for somebody. Returns whether anybody still comes to this one."""
    while True:
        with _lock:
            wanted = not background.over.is_set() and any(page in pages for _, pages in _now())
        if not wanted or not background.busy:
            return wanted
        time.sleep(PAUSE)
