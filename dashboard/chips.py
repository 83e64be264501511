"""The edits of the view as chips: switched on and off one by one, removed, added; all of it in the link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import edited, session
from dashboard.controls import sentence
from dashboard.models import Model
from transformer.analysis.findings import Head

if TYPE_CHECKING:
    from transformer.edits import Edit
    from transformer.tasks import Question

JOINT, OFF = "~", "-"
MOST = 12
"""Edits at a time."""
KINDS = {
    "zero": "remove a head: zero",
    "mean": "remove a head: mean",
    "shuffled": "remove a head: shuffled",
    "only": "keep only this head",
    "uniform": "look evenly at all",
    "diagonal": "look at itself",
    "expected": "look at the expected key",
    "scale": "scale the scores",
    "shift": "move the scores by keys",
    "swap": "swap two positions",
    "unplaced": "remove the positions",
}


@dataclass(frozen=True)
class Chip:
    """One edit of the view, and why it cannot be made, if it cannot."""

    text: str
    on: bool
    edit: Edit
    error: str = ""

    @property
    def written(self) -> str:
        return self.text if self.on else f"{OFF}{self.text}"


def chips(model: Model, question: Question) -> list[Chip]:
    """The edits of the view, each tried after those before it. What a link names in vain is left out, with a notice."""
    from transformer.edits import EditError, parse_edit

    found: list[Chip] = []
    made: tuple[Edit, ...] = ()
    asked = [part for part in session.settings().edits.split(JOINT) if part]
    refused = [f"Only {MOST} edits can be made at a time."] if len(asked) > MOST else []
    for part in asked[:MOST]:
        on, text = not part.startswith(OFF), part.removeprefix(OFF)
        if any(chip.text == text for chip in found):
            continue
        try:
            edit = parse_edit(text)
        except EditError as error:
            refused.append(f"An edit of the link cannot be read: {error}.")
            continue
        error_said = ""
        if on:
            try:
                edited.said(model, question, (*made, edit))
                made = (*made, edit)
            except EditError as error:
                error_said = sentence(str(error))
        found.append(Chip(text, on, edit, error_said))
    if refused:
        session.notice(refused[0])
        keep(found)
    return found


def active(found: list[Chip]) -> tuple[Edit, ...]:
    """The edits that are made."""
    return tuple(chip.edit for chip in found if chip.on and not chip.error)


def keep(found: list[Chip]) -> None:
    """Make these the edits of the view."""
    session.update(edits=JOINT.join(chip.written for chip in found))


def row(found: list[Chip]) -> None:
    """The chips, four to a line, each with its switch and its cross."""
    for start in range(0, len(found), 4):
        for column, chip in zip(st.columns(4, gap="small"), found[start : start + 4], strict=False):
            with column.container(border=True, horizontal=True, vertical_alignment="center", gap="small"):
                key = f"chip-{chip.text}"
                st.session_state[key] = chip.on
                st.toggle(chip.edit.words, key=key, on_change=_switch, args=(found, chip))
                st.button(
                    "Remove",
                    key=f"cross-{chip.text}",
                    icon=":material/close:",
                    type="tertiary",
                    on_click=_take_away,
                    args=(found, chip),
                )
            if chip.error:
                column.error(chip.error, icon=":material/error:")


def _switch(found: list[Chip], chip: Chip) -> None:
    on = bool(st.session_state[f"chip-{chip.text}"])
    keep([Chip(each.text, on if each == chip else each.on, each.edit) for each in found])


@session.once
def _take_away(found: list[Chip], chip: Chip) -> None:
    keep([each for each in found if each != chip])


@session.once
def toggle(found: list[Chip], text: str) -> None:
    """Make an edit that is not there, and take away one that is."""
    from transformer.edits import parse_edit

    rest = [chip for chip in found if chip.text != text]
    if len(rest) == len(found):
        if len(found) == MOST:
            session.notice(f"Only {MOST} edits can be made at a time: take one away first.")
            return
        rest = [*found, Chip(text, True, parse_edit(text))]
    keep(rest)


def add(model: Model, found: list[Chip], heads: list[Head]) -> None:
    """The line with which an edit is added: what, where, how much."""
    left, middle, right, button = st.columns([3, 2, 2, 1.2], vertical_alignment="bottom")
    kind = left.selectbox("Edit", list(KINDS), key="edit-kind", format_func=KINDS.__getitem__)
    text = kind
    if kind == "swap":
        places = len(model.task.target_names(model.task.length))
        first = middle.number_input("Position", 1, places, value=1, key="edit-first")
        second = right.number_input("and position", 1, places, value=min(2, places), key="edit-second")
        text = f"swap:{first},{second}"
    elif kind != "unplaced":
        many = len({head.kind for head in heads}) > 1
        if st.session_state.get("edit-head") not in heads:
            st.session_state["edit-head"] = heads[0]
        head = middle.selectbox(
            "of",
            heads,
            key="edit-head",
            format_func=lambda h: f"head {h.short}" + (f" ({h.kind})" if many else ""),
        )
        text = f"{kind}:{head}"
        if kind == "scale":
            text += f":{right.number_input('Factor', -100.0, 100.0, value=0.5, step=0.5, key='edit-factor'):.10g}"
        elif kind == "shift":
            text += f":{right.number_input('Keys', -99, 99, value=1, key='edit-keys')}"
    button.button("Add", on_click=_added, args=(found, text), icon=":material/add:", width="stretch", type="primary")
    if error := st.session_state.pop("edit_error", ""):
        st.error(error, icon=":material/error:")


@session.once
def _added(found: list[Chip], text: str) -> None:
    from transformer.edits import EditError, parse_edit

    try:
        edit = parse_edit(text)
    except EditError as error:
        st.session_state.edit_error = sentence(str(error))
        return
    if len(found) >= MOST:
        st.session_state.edit_error = f"Only {MOST} edits can be made at a time: take one away first."
        return
    keep([*(chip for chip in found if chip.text != text), Chip(text, True, edit)])
