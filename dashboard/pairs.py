"""A second input beside the one that is asked: the same but for one token, or what is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import edited, session
from dashboard.models import Model
from dashboard.passages import as_typed, in_a_line
from dashboard.settings import LONGER

if TYPE_CHECKING:
    from transformer.tasks import Question


def second_input(model: Model, question: Question) -> Question:
    """The input whose run is mended, in a field."""
    task = model.task
    other = edited.one_token_changed(model, question)
    typed = session.settings().other
    if typed:
        try:
            other = task.parse(typed if task.lawful else as_typed(typed))
        except ValueError as error:
            session.notice(f"The second input cannot be read: {error}.")
            session.update(other="")
    st.session_state["control-other"] = in_a_line(task.typed(other))

    def written() -> None:
        text = st.session_state["control-other"]
        session.update(other=" ".join(text.lower().split()) if task.lawful else in_a_line(text))

    st.text_input("Second input", key="control-other", on_change=written, max_chars=LONGER["other"])
    return other


def input_of_patch(model: Model, question: Question, place: DeltaGenerator) -> str:
    """The input that a head is handed on from, in a field, as the edit's text has it."""
    from transformer.edits import PatchInput, edit_text

    # What was typed for another task is no input of this one.
    key = "edit-input" if model.task.lawful else f"edit-input-{model.config.task.text}"
    st.session_state.setdefault(key, in_a_line(model.task.typed(edited.one_token_changed(model, question))))
    typed = place.text_input("as in input", key=key, max_chars=LONGER["edits"])
    if model.task.lawful:
        return "_".join(c for c in typed.lower() if not c.isspace() and c not in ",;")
    return edit_text(PatchInput("decoder.0.self_attention.z", 0, as_typed(typed))).rpartition(":")[2]
