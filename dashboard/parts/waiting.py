"""What is shown while something goes on behind the page, and the words with the hourglass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import TypeVar

import streamlit as st

from dashboard.models import background
from dashboard.models.background import Lane
from dashboard.models.on_the_spot import quick_training
from dashboard.models.on_the_spot.quick_training import Lesson
from dashboard.parts.prose import plain, sentence
from dashboard.parts.redrawing import Every, redraw_on_news
from dashboard.server.background import torch
from dashboard.view import clicks, session
from transformer.config import RunConfig

T = TypeVar("T")
AGAIN = 0.5
"""Seconds between two looks at what goes on."""


def until(
    over: Callable[[], bool],
    draw: Callable[[], object],
    *,
    news: Callable[[], object] | None = None,
    then: Callable[[], object] = lambda: None,
    every: Every = AGAIN,
) -> None:
    """Draw something again and again until it is over; `then` do this, and draw the whole page anew.

    Again is when `news` returns another value, which it also does when it is over (see `redraw_on_news`).

    What is over at once is drawn once as well: a page that asks for another run before it is painted is never painted.
    """
    drawn = False

    def look() -> None:
        nonlocal drawn
        if drawn and over():
            then()
            clicks.again()
        drawn = True
        draw()

    redraw_on_news(look, every=every, news=news, behind=lambda: not drawn and over(), awaits=True)


def ready(future: Future[T], words: str) -> T | None:
    """What was worked out; or None, words that say what goes on, and the page anew when it is there.

    Raises what the work raised.
    """
    found = background.ready(future)
    if found is None:
        until(future.done, lambda: hourglass(words), news=future.done)
    return found


def lesson(place: str, config: RunConfig, lane: Lane = background.LESSONS, mistake: str = "") -> Lesson:
    """The quick training that a place of this session watches now; the one it watched before is left."""
    key = f"lesson-{place}"
    former: Lesson | None = st.session_state.get(key)
    if former is not None and (former.config, former.mistake) == (config, mistake):
        return former
    found = quick_training.take(config, lane, mistake)
    if former is not None:
        former.leave()
    st.session_state[key] = found
    return found


def grown(lessons: Sequence[Lesson], draw: Callable[[], object]) -> None:
    """Draw quick trainings, again and again as they grow; once where they are over within background.AT_ONCE.

    Under them stands why one broke off, if one did.
    """

    def drawn() -> None:
        draw()
        for problem in {each.problem for each in lessons if each.problem}:
            st.warning(sentence(plain(problem)), icon=":material/warning:")

    wait([each.future for each in lessons], background.AT_ONCE)
    if all(each.done for each in lessons):
        drawn()
    else:
        until(lambda: all(each.done for each in lessons), drawn, news=lambda: [each.progress() for each in lessons])


def after_first_look() -> None:
    """Ask for another rerun after a first look at a model: once it is painted and PyTorch is there."""
    if session.first_look():
        model = session.chosen()
        until(torch_is_there, lambda: None, news=torch_is_there, then=lambda: session.saw(model), every=session.BEHIND)


def torch_is_there() -> bool:
    """Is PyTorch imported?"""
    return torch() is not None


def hourglass(words: str) -> None:
    """Say what is waited for."""
    st.caption(f":material/hourglass_top: {words}")
