"""The strip of a lecture above the page: the words of its step, and the way on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from dashboard.components.appearance import palette
from dashboard.components.payload import pack
from dashboard.components.presses import counted_button
from dashboard.components.registration import renderer
from dashboard.frame import sharing
from dashboard.frame.guided import reaching
from dashboard.lectures.expressions import Expression
from dashboard.lectures.lecture import SIDEBAR, Lecture, Step
from dashboard.lectures.reading import OWN_FIELDS, filled
from dashboard.lectures.shelf import lectures
from dashboard.lectures.values import ViewValues, model_of
from dashboard.models.cache import cached
from dashboard.models.model import Model
from dashboard.parts.prose import plain
from dashboard.server import streamlit_private
from dashboard.server.http import presenter_address
from dashboard.server.streamlit_private import DeltaGenerator
from dashboard.view import clicks, session
from dashboard.view.link import FIELDS, View
from dashboard.view.pages import PAGES, Page
from dashboard.view.settings import OF_TRAINING
from transformer.foundation.foreign import shortened

PODIUM = '<p class="al-podium" style="margin: 0; font-weight: 600" role="status" hidden></p>'


AROUND = ("lecture", "prediction", "glossary", "notices", "training-dock")
"""The keys of what stands around a page, and is no part of it."""


def strip(page: Page) -> None:
    """The step that the view names, if it names one."""
    view = session.settings()
    if not view.lecture:
        return
    lecture = lectures().files.get(view.lecture)
    if lecture is None:
        session.notice(f"There is no lecture “{shortened(view.lecture, 60)}” here.")
        session.update(lecture="", lecture_step=1, exploring=False)
        return
    count = len(lecture.steps)
    if view.lecture_step > count:
        session.notice(f"{lecture.title} has {count} steps, and no step {view.lecture_step}; this is the last.")
        session.update(lecture_step=count)
    at = session.settings().lecture_step
    step = lecture.steps[at - 1]
    with st.container(border=True, key="lecture", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lecture-way"):
            title = st.container(key="lecture-title", width="content")
            with st.container(key="lecture-name", width="content"):
                st.markdown(f":small[:gray[{plain(lecture.title)}]]")
            st.markdown(f":small[:gray[step {at} of {count}]]")
            following = _way(lecture, step, at, page)
        # Both are always there, so that the podium after them keeps its place and hears every key.
        here = page.address == step.page
        said, note = st.container(key="lecture-words" if here else "lecture-away"), st.container()
        text = words(step) if here else ""
        look, shown = step.look if here else "", followed(page)
        until = shown.until if shown else ""
        podium = renderer("podium", html=PODIUM, isolate_styles=False)
        asks = shown is not None and shown.question is not None
        told = {"look": look, "until": until, "step": place(), "asks": asks, "explored": session.settings().exploring}
        podium(key="podium", data=pack(told | {"presenter": _for_presenter(lecture, at)}, b""))
        with following:  # a press counts for this step only once the podium knows that it asks
            _next(lecture, at)
        title.markdown(f"**{plain(step.title)}**")  # its words and its title come together, right before its question
        if here:
            said.markdown(text)
        else:
            said.caption(f"The words of this step stand on the page “{PAGES[step.page].title}”: return to read them.")
        if here and not at_home(step):
            note.caption("You have changed the view. The words speak of the step as it was written.")
    st.html(style(look, shown.controls if shown else None, until))


def place() -> str:
    """The step that the view names, and how many moves led to it: another name after each move. Empty outside one."""
    view = session.settings()
    return f"{view.lecture}/{view.lecture_step}/{st.session_state.get('lecture_moves', 0)}" if view.lecture else ""


def begin(lecture: Lecture) -> None:
    """Start a lecture: its questions are asked anew, whatever was predicted in this browser before."""
    st.session_state.lecture_begun = f"{lecture.name} {time.time_ns()}"
    go(lecture, 1)


def current_start() -> str:
    """Which start of the lecture the view is in: another name after each. Empty outside one, and after a reload."""
    view, named = session.settings(), str(st.session_state.get("lecture_begun", ""))
    return named if view.lecture and named.startswith(f"{view.lecture} ") else ""


def followed(page: Page) -> Step | None:
    """The step that is shown as it is written: on its own page, and not explored."""
    view = session.settings()
    lecture = lectures().files.get(view.lecture) if view.lecture else None
    if lecture is None or view.exploring or not 1 <= view.lecture_step <= len(lecture.steps):
        return None
    step = lecture.steps[view.lecture_step - 1]
    return step if step.page == page.address else None


def _way(lecture: Lecture, step: Step, at: int, page: Page) -> DeltaGenerator:
    """Back, away from the step and home again. Returns the place for what leads on."""

    def back(presses: int) -> None:
        # From where the lecture is by now: the press before may have been answered, and its step not drawn yet.
        go(lecture, max(session.settings().lecture_step - presses, 1))

    counted_button(
        "Back",
        back,
        key="lecture-back",
        letter="←",
        keys=("ArrowLeft", "PageUp"),
        disabled=at == 1,
        width="content",
    )
    following = st.container(key="lecture-following", width="content")
    if page.address == step.page and at_home(step) and not session.settings().exploring:
        st.button("Explore from here", on_click=_explore, key="lecture-explore", help="Shows every control.")
    else:
        st.button("Return", on_click=go, args=(lecture, at), key="lecture-return", type="primary")
    st.link_button(
        "Presenter",
        presenter_address(),
        help="Opens your notes, the next step and a clock in a window of their own. It follows this one.",
        key="lecture-presenter",
    )
    sharing.button(lecture)
    st.button("Leave", on_click=_leave, key="lecture-leave", help="Ends the lecture; the page stays as it is.")
    return following


def _next(lecture: Lecture, at: int) -> None:
    """On to the next step, past no question."""
    count = len(lecture.steps)

    def on(presses: int) -> None:
        now = min(session.settings().lecture_step, count)
        unread = now != at and lecture.steps[now - 1].question is not None
        go(lecture, now if unread else lecture.after(now, presses))

    counted_button(
        "Next",
        on,
        key="lecture-next",
        letter="→",
        keys=("ArrowRight", "PageDown"),
        disabled=at == count,
        primary=True,
        most=lecture.after(at, count) - at,
        width="content",
    )


def _for_presenter(lecture: Lecture, at: int) -> dict[str, object]:
    """What the presenter's window shows of a step (server/presenter/)."""
    step = lecture.steps[at - 1]
    following = lecture.steps[at] if at < len(lecture.steps) else None
    asks = "" if following is None else question(following)
    return {
        "lecture": lecture.title,
        "minutes": lecture.minutes,
        "at": at,
        "count": len(lecture.steps),
        "title": step.title,
        "notes": notes(step),
        "question": question(step),
        "next": "" if following is None else f"{following.title}.{f' It asks: {asks}' if asks else ''}",
    }


def go(lecture: Lecture, at: int) -> None:
    """Show a step as it is written, its number counted from 1."""
    step = lecture.steps[at - 1]
    now = session.settings()
    session.show(
        replace(
            step.view, lecture=lecture.name, lecture_step=at, sidebar=now.sidebar, predict=now.predict, room=now.room
        )
    )
    reaching.ask(step.page, held=True)
    st.session_state.lecture_moves = st.session_state.get("lecture_moves", 0) + 1


@clicks.once
def _explore() -> None:
    session.update(exploring=True)


@clicks.once
def _leave() -> None:
    session.update(lecture="", lecture_step=1, exploring=False)


def at_home(step: Step) -> bool:
    """Is the view the step's own? What is offered for training is no part of that, nor is the sidebar."""
    return _looked_at(session.settings()) == _looked_at(step.view)


def _looked_at(view: View) -> list[object]:
    rest = {*OWN_FIELDS, SIDEBAR, "predict", "room", "run", *OF_TRAINING}
    run = view.run or next(iter(session.choices()))  # the address names it, though the step does not
    return [run, *(getattr(view, name) for name in FIELDS if name not in rest)]


def words(step: Step) -> str:
    """The words of a step with their numbers, as Markdown. A number that cannot be had stands as a dash.

    `lecture check` says why it cannot be had.
    """
    return _said(step)[0]


def notes(step: Step) -> str:
    """The lecturer's notes to a step, with their numbers."""
    return _said(step)[1]


def question(step: Step) -> str:
    """What a step asks, with its numbers; empty where it asks nothing. Those of its words are not measured for that."""
    return "" if step.question is None else _said(replace(step, prose=step.question.words, notes=()))[0]


def _said(step: Step) -> tuple[str, str]:
    if not any(isinstance(each, Expression) for each in (*step.prose, *step.notes)):
        return _filled(step, None)
    try:
        model = model_of(step.view, session.choices())
    except ValueError:
        return _filled(step, None)
    return _measured(step, model)


@cached(256)
def _measured(step: Step, _model: Model) -> tuple[str, str]:
    try:
        return _filled(step, ViewValues(step.view))
    except ValueError:
        return _filled(step, None)


def _filled(step: Step, values: ViewValues | None) -> tuple[str, str]:
    """The words and the notes with the numbers in their places."""
    return filled(step.prose, values), filled(step.notes, values)


def style(look: str, controls: Sequence[str] | None, until: str = "") -> str:
    """What is marked, by its key; which controls stay: those of these fields, None is all; and where the page ends.

    Where none stays, nothing else stays that one presses: whoever is to look has no use for it.
    """
    rules = []
    if look:
        rules.append(f".st-key-{look} {{ outline: 2px dashed {palette().accent}; outline-offset: 2px; }}")
    if until:  # what follows is drawn all the same, and is there as soon as it is to be seen
        after = f"{streamlit_private.PAGE} :is(.st-key-{until}, :has(.st-key-{until})) ~ *"
        rules.append(f"{after} {{ visibility: hidden; min-height: 0; max-height: 0; overflow: hidden; }}")
    if controls is not None:
        kept = "".join(f":not(.st-key-control-{name})" for name in controls if name != SIDEBAR)
        rules.append(f'{streamlit_private.PAGE} [class*="st-key-control-"]{kept} {{ display: none; }}')
        if not controls:
            pressed = ", ".join((*streamlit_private.BUTTONS, ".stElementContainer:has(.al-presses)"))
            around = ", ".join(f".st-key-{key} *" for key in AROUND)
            rules.append(f"{streamlit_private.PAGE} :is({pressed}):not({around}) {{ display: none; }}")
        if SIDEBAR not in controls:
            rules.append(f"{', '.join(streamlit_private.SIDEBAR)} {{ display: none; }}")
    return f"<style>{' '.join(rules)}</style>"
