"""How long what is measured is: as the view says, or as the task's longest."""

from __future__ import annotations

import streamlit as st

from dashboard.parts.widgets import controlled
from dashboard.view import session
from transformer.tasks import Task


def measured_length(task: Task) -> int:
    """The length that the view names, if the task has it; else the task's greatest."""
    named = session.settings().measured_length
    return named if named is not None and named in task.lengths else task.length


def pick_length(label: str, task: Task) -> None:
    """The slider of it."""
    controlled(
        st.select_slider,
        label,
        task.lengths,
        key="control-measured",
        value=measured_length(task),
        picked=lambda length: session.update(measured_length=length),
    )
