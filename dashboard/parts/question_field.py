"""The field in which a model is asked: in the sidebar, and on a page that has a model of its own."""

from __future__ import annotations

import streamlit as st

from dashboard.models.model import Model
from dashboard.models.passages import in_link, parsed
from dashboard.parts.prose import plain, sentence
from dashboard.parts.widgets import controlled
from dashboard.view import clicks, session
from dashboard.view.link import longest
from transformer.tasks import Question


def question_field(model: Model, question: Question) -> None:
    """Draw the field with what the model reads; what it cannot read stays there, with the reason."""
    task, lawful = model.task, model.task.lawful
    afresh = {} if lawful else {"query": None, "key": None}  # of other words another place is worth a look
    shown = task.typed(question)
    error = st.session_state.pop("input_error", "")

    def written(typed: str) -> None:
        try:
            parsed(task, typed)
        except ValueError as error:
            st.session_state.input_error, st.session_state.input_typed = sentence(str(error)), typed
            clicks.touch()
            return
        session.update(input=in_link(task, typed), **afresh)

    controlled(
        st.text_input if lawful else st.text_area,
        "The question" if lawful else "Input",
        key="control-input",
        # What was typed stays in the field as long as the error about it does.
        value=st.session_state.pop("input_typed", shown) if error else shown,
        picked=written,
        max_chars=longest("input"),
    )
    if error:
        st.error(plain(error), icon=":material/error:")
