"""Predict, then see: a page stays covered until the reader has said what it will show.

A lecture's step asks what it is written to ask. With `?predict=1` every other page asks for what it shows best. What is
predicted stays in the reader's own browser: the server is never told.
"""

from __future__ import annotations

import streamlit as st

from dashboard.components.payload import pack
from dashboard.components.registration import renderer
from dashboard.frame.guided import lecture
from dashboard.lectures.expressions import parsed
from dashboard.lectures.questions import BARS, CELLS, WORDS, Question, asked
from dashboard.lectures.values import ViewValues
from dashboard.models.model import Model
from dashboard.parts.widgets import bound
from dashboard.view import session
from dashboard.view.link import FIELDS, View
from dashboard.view.pages import Page

HTML = '<section class="al-prediction"></section>'
SWITCH = "Predict first"
UNASKED = ("lectures", "runs", "populations", "exercises", "check")
"""Pages that show no result of the chosen model."""
HOW_OFTEN = Question(("How often is each position right? Draw the bars.",), BARS, parsed("accuracies"))
QUESTIONS = {
    "overview": HOW_OFTEN,
    "accuracy": HOW_OFTEN,
    "heads": Question(
        ("Where does the head in focus look? Paint the cells that get the most attention.",),
        CELLS,
        parsed("pattern(head)"),
    ),
}
"""What pages ask by the switch. The others, and these where there is no such answer, ask for some words."""


def switch() -> None:
    """The switch in the sidebar."""
    bound(
        st.toggle,
        SWITCH,
        "predict",
        help="Covers each page until you have said what you expect to see. Your prediction stays in this browser.",
    )


def draw(page: Page) -> None:
    """The question of this view above the page, and the cover over what follows; nothing where none is asked."""
    view = session.settings()
    step = lecture.followed(page)
    model = session.chosen()
    if step is not None and step.question is not None:
        found = _asked(step.question, step.view, model)
    elif view.predict and page.address not in UNASKED:
        found = _of_page(page, view, model)
    else:
        found = None
    if found is None:
        return
    header, body = found
    with st.container(key="prediction"):
        st.html(f"<style>{cover(header['id'])}</style>")
        # A lecture's keys tell by its place whether they were pressed at this question (web/podium).
        told = header | {"of": lecture.place(), "start": lecture.current_start()}
        renderer("prediction", html=HTML, isolate_styles=True)(key="question", data=pack(told, body))


def cover(identity: str) -> str:
    """The style that hides what stands below a question, and a lecture's words, until the browser marks it answered."""
    covered = f'html:not([data-predicted="{identity}"])'
    return (
        f"{covered} :has(> .st-key-prediction) ~ * "
        "{ visibility: hidden; min-height: 0; max-height: 0; overflow: hidden; }"
        f"{covered} :is(:has(> .st-key-lecture-title), :has(> .st-key-lecture-words)) {{ display: none; }}"
    )


def _of_page(page: Page, view: View, model: Model) -> tuple[dict, bytes]:
    if page.address in QUESTIONS:
        # Measured on more or fewer sequences, it is the same question.
        found = _asked(QUESTIONS[page.address], view.with_(sequences=FIELDS["sequences"].default), model)
        if found is not None:
            return found
    text = f"What do you expect to see on “{page.title}”? Write it down, then look."
    return asked(Question((text,), WORDS), {}, f"{page.address} {model.name} {model.step}")


def _asked(question: Question, view: View, model: Model) -> tuple[dict, bytes] | None:
    """The question with its answer; None where this view has none. `lecture check` says why."""
    try:
        return asked(question, ViewValues(view), f"{model.name} {model.step}")
    except ValueError:
        return None
