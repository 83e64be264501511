"""The strip of a lecture above the page: the words of its step, and the way on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from dashboard.components.appearance import palette
from dashboard.components.payload import pack
from dashboard.components.presses import counted_button
from dashboard.components.registration import renderer
from dashboard.lectures.expressions import Expression
from dashboard.lectures.lecture import OWN_FIELDS, SIDEBAR, Lecture, Step
from dashboard.lectures.shelf import shelf
from dashboard.lectures.values import ViewValues, model_of
from dashboard.models.cache import cached
from dashboard.models.model import Model
from dashboard.parts.prose import plain
from dashboard.server import streamlit_private
from dashboard.view import clicks, session
from dashboard.view.pages import PAGES, Page
from dashboard.view.settings import FIELDS, OF_TRAINING, Settings

MISSING = "–"
PODIUM = '<div class="al-podium" hidden></div>'


def strip(page: Page) -> None:
    """The step that the view names, if it names one; and the page of the step that was asked for last."""
    wanted = st.session_state.pop("lecture_page", page.address)
    if wanted != page.address:
        st.switch_page(PAGES[wanted].script)
    view = session.settings()
    if not view.lecture:
        return
    lecture = shelf().lectures.get(view.lecture)
    if lecture is None:
        session.notice(f"There is no lecture “{view.lecture[:60]}” here.")
        session.update(lecture="", lecture_step=1, exploring=False)
        return
    count = len(lecture.steps)
    if view.lecture_step > count:
        session.notice(f"{lecture.title} has {count} steps, and no step {view.lecture_step}; this is the last.")
        session.update(lecture_step=count)
    at = session.settings().lecture_step
    step = lecture.steps[at - 1]
    followed = page.address == step.page and not view.exploring
    with st.container(border=True, key="lecture", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lecture-way"):
            st.markdown(f"**{plain(step.title)}** :small[:gray[{plain(lecture.title)}, step {at} of {count}]]")
            _way(lecture, step, at, page)
        if page.address != step.page:
            st.caption(f"The words of this step stand on the page “{PAGES[step.page].title}”: return to read them.")
        else:
            st.markdown(words(step))
            if not at_home(step):
                st.caption("You have changed the view. The words speak of the step as it was written.")
    look = step.look if page.address == step.page else ""
    st.html(style(look, step.controls if followed else None))
    podium = renderer("podium", html=PODIUM, isolate_styles=False)
    podium(
        key="podium",
        data=pack({"look": look, "step": f"{lecture.name}/{at}/{st.session_state.get('lecture_moves', 0)}"}, b""),
    )


def _way(lecture: Lecture, step: Step, at: int, page: Page) -> None:
    """Back and on, away from the step and home again."""
    count = len(lecture.steps)

    def move(by: int) -> None:
        go(lecture, min(max(at + by, 1), count))

    counted_button(
        "Back",
        lambda presses: move(-presses),
        key="lecture-back",
        letter="←",
        keys=("ArrowLeft", "PageUp"),
        disabled=at == 1,
        width="content",
    )
    counted_button(
        "Next",
        move,
        key="lecture-next",
        letter="→",
        keys=("ArrowRight", "PageDown"),
        disabled=at == count,
        primary=True,
        width="content",
    )
    if page.address == step.page and at_home(step) and not session.settings().exploring:
        st.button("Explore from here", on_click=_explore, key="lecture-explore", help="Shows every control.")
    else:
        st.button("Return", on_click=go, args=(lecture, at), key="lecture-return", type="primary")
    st.button("Leave", on_click=_leave, key="lecture-leave", help="Ends the lecture; the page stays as it is.")


def go(lecture: Lecture, at: int) -> None:
    """Show a step as it is written, its number counted from 1."""
    step = lecture.steps[at - 1]
    session.show(replace(step.view, lecture=lecture.name, lecture_step=at, sidebar=session.settings().sidebar))
    st.session_state.lecture_page = step.page
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


def _looked_at(view: Settings) -> list[object]:
    rest = {*OWN_FIELDS, SIDEBAR, *OF_TRAINING}
    return [getattr(view, name) for name in FIELDS if name not in rest]


def words(step: Step) -> str:
    """The words of a step with their numbers, as Markdown. A number that cannot be had stands as a dash.

    `lecture check` says why it cannot be had.
    """
    try:
        model = model_of(step.view, session.choices())
    except ValueError:
        return "".join(each if isinstance(each, str) else MISSING for each in step.prose)
    return _written(step, model)


@cached(256)
def _written(step: Step, _model: Model) -> str:
    try:
        values = ViewValues(step.view)
    except ValueError:
        values = None
    return "".join(each if isinstance(each, str) else _number(each, values) for each in step.prose)


def _number(expression: Expression, values: ViewValues | None) -> str:
    try:
        return MISSING if values is None else expression.written(values)
    except ValueError:
        return MISSING


def style(look: str, controls: Sequence[str] | None) -> str:
    """What is marked, by its key, and which controls stay: those of these fields; None is all."""
    rules = []
    if look:
        rules.append(f".st-key-{look} {{ outline: 2px dashed {palette().accent}; outline-offset: 2px; }}")
    if controls is not None:
        kept = "".join(f":not(.st-key-control-{name})" for name in controls if name != SIDEBAR)
        rules.append(f'{streamlit_private.PAGE} [class*="st-key-control-"]{kept} {{ display: none; }}')
        if SIDEBAR not in controls:
            rules.append(f"{', '.join(streamlit_private.SIDEBAR)} {{ display: none; }}")
    return f"<style>{' '.join(rules)}</style>"
