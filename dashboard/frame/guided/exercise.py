"""The strip of an exercise above the page: what is to be reached, and what of it the view reaches."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.components.payload import pack
from dashboard.components.registration import renderer
from dashboard.frame.guided import reaching
from dashboard.lectures.exercises.exercise import Exercise, Reached, reached
from dashboard.lectures.reading import filled
from dashboard.lectures.shelf import exercises
from dashboard.lectures.values import ViewValues
from dashboard.models.cache import cached
from dashboard.models.model import Model
from dashboard.parts.prose import plain
from dashboard.view import clicks, session
from dashboard.view.link import View
from dashboard.view.pages import PAGES, Page
from transformer.foundation.foreign import shortened

SOLVED = """
<div class="al-solved"><p class="words" role="status"></p><a class="proof" hidden>Open the solution</a>
<button class="copy" type="button" hidden>Copy the link</button></div>
"""
REACHED, OPEN = ":green[:material/check_circle:]", ":gray[:material/radio_button_unchecked:]"


def strip(page: Page) -> None:
    """The exercise that the view names, if it names one, measured on this very view."""
    view = session.settings()
    if not view.exercise or view.lecture:
        return
    every = exercises().files
    exercise = every.get(view.exercise)
    if exercise is None:
        session.notice(f"There is no exercise “{shortened(view.exercise, 60)}” here.")
        session.update(exercise="")
        return
    names = list(every)
    at = names.index(exercise.name)
    with st.container(border=True, key="exercise", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="exercise-way"):
            with st.container(key="exercise-title", width="content"):
                st.markdown(f"**{plain(exercise.title)}**")
            st.markdown(f":small[:gray[exercise {at + 1} of {len(names)}]]")
            _way(exercise, None if at + 1 == len(names) else every[names[at + 1]])
        st.markdown(words(exercise, page))
        found = None if session.first_look() else goals(exercise)
        st.markdown(checked(exercise, found))
        solved = found is not None and all(each.met for each in found)
        mark(exercise, session.link(page.address) if solved else None, key=f"solved-{exercise.name}")


def mark(exercise: Exercise, proof: str | None, key: str) -> None:
    """Whether it is solved, for the reader's own browser to keep: `proof` is the link of the view that solves it.

    Each place has a `key` of its own: the list of exercises may stand below the strip of one.
    """
    mount = renderer("solved", html=SOLVED, isolate_styles=True)
    mount(key=key, data=pack({"exercise": exercise.name, "proof": proof}, b""))


def _way(exercise: Exercise, following: Exercise | None) -> None:
    """The hint, from the start again, the next one, and out."""
    if exercise.hint:
        with st.popover("Hint", key="exercise-hint"):
            st.markdown(filled(exercise.hint, None))
    st.button("Start again", on_click=go, args=(exercise,), key="exercise-again", help="Shows the view it begins with.")
    if following is not None:
        st.button("Next exercise", on_click=go, args=(following,), key="exercise-next")
    st.button("Leave", on_click=_leave, key="exercise-leave", help="Ends the exercise; the page stays as it is.")


@clicks.once
def go(exercise: Exercise) -> None:
    """Show the view that an exercise begins with."""
    now = session.settings()
    session.show(exercise.view.with_(exercise=exercise.name, sidebar=now.sidebar, predict=now.predict, room=now.room))
    reaching.ask(exercise.page)


@clicks.once
def _leave() -> None:
    session.update(exercise="")


def words(exercise: Exercise, page: Page) -> str:
    """What is to be reached, and, on another page, where one begins."""
    said = _measured(exercise.name, exercise.words, exercise.view)
    return said if page.address == exercise.page else f"{said} It begins on the page *{PAGES[exercise.page].title}*."


@cached(64)
def _measured(name: str, words: tuple, view: View) -> str:
    try:
        return filled(words, ViewValues(view))
    except ValueError:
        return filled(words, None)


def goals(exercise: Exercise) -> tuple[Reached, ...]:
    """How each goal stands in the view of this session, and in the model that it names now: a training goes on."""
    return _goals(session.chosen(), exercise.goals, session.settings())


@cached(64)
def _goals(model: Model, goals: tuple, view: View) -> tuple[Reached, ...]:
    try:
        values = ViewValues(view)
    except ValueError as error:
        return tuple(Reached(goal.words, False, None, str(error)) for goal in goals)
    return tuple(reached(goal, values) for goal in goals)


def checked(exercise: Exercise, found: Sequence[Reached] | None) -> str:
    """The goals, a line each, with a mark; `found` is None before they are measured."""
    if found is None:
        return "  \n".join(f"{OPEN} {plain(capital(goal.words))}" for goal in exercise.goals)
    return "  \n".join(_line(each) for each in found)


def capital(words: str) -> str:
    """The words with a capital letter."""
    return f"{words[:1].upper()}{words[1:]}"


def _line(goal: Reached) -> str:
    said = "reached" if goal.met else "not yet"
    if goal.now is not None:
        said += f": {goal.now:.3f}" if isinstance(goal.now, float) else f": {plain(str(goal.now)) or 'none'}"
    if goal.why:
        said += f": {plain(goal.why)}"
    return f"{REACHED if goal.met else OPEN} {plain(capital(goal.words))} :gray[({said})]"
