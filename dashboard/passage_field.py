"""What stands in the sidebar beside a passage: how long it is, and what the model has no word for."""

from __future__ import annotations

from typing import cast

import streamlit as st

from dashboard import passages, session
from dashboard.models import Model
from transformer.text.task import Text


def length(model: Model) -> None:
    """How many tokens of the text are read: the same passage goes on, or another one is drawn."""
    task, question = cast("Text", model.task), session.question(model)
    key = "control-tokens"
    st.session_state[key] = len(question)

    def picked() -> None:
        wanted = st.session_state[key]
        longer = passages.around(task.known.held_out, question, wanted)
        drawn = session.draw(model, wanted) if longer is None else longer
        session.update(input=passages.in_a_line(task.typed(drawn)))

    st.select_slider(
        "Tokens",
        passages.lengths(task.length, len(question)),
        key=key,
        on_change=picked,
        help="How long the passage is. It goes on where it stands in what was held out; elsewhere another is drawn.",
    )


def note(model: Model) -> str:
    """How much of a text can be typed, and how much of it the model has no word for."""
    question = session.question(model)
    unknown = int((question == model.task.symbols - 1).sum())
    said = f"1 to {model.task.length} tokens, blanks and line ends among them."
    if not unknown:
        return said
    are = "is" if unknown == 1 else "are"
    return f"{said} {unknown} of these {len(question)} {are} none of the {passages.known(model.task)} it knows."
