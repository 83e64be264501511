"""The edits of the view as chips: switched on and off one by one, removed, added, painted; all of it in the link."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.attention.edits.second_input import input_of_patch
from dashboard.components.painter import Painter, Words
from dashboard.models import edits
from dashboard.models.long_inputs import from_afar, squares, squares_sentence
from dashboard.models.model import Model
from dashboard.parts.heads import LINK
from dashboard.parts.prose import plain, sentence
from dashboard.parts.widgets import controlled
from dashboard.server.streamlit_private import DeltaGenerator
from dashboard.view import clicks, session
from dashboard.view.link import longest
from dashboard.view.settings import JOINT, OFF
from transformer.analysis.findings import Attention, Head
from transformer.masks.painted import LARGEST

if TYPE_CHECKING:
    from transformer.edits import Edit
    from transformer.edits.patterns.painted import ForcePattern
    from transformer.tasks import Question

MOST = 12
"""Edits at a time."""
PATTERN = Words(
    on="looks at",
    off="does not look at",
    empty="has no painted cell: it looks where it did before",
    empties="have no painted cell: they look where they did before",
    hint="Drag to paint or to wipe.",
    name="painted",
    value="looks",
)


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

    @property
    def painted(self) -> bool:
        return self.text.startswith("painted:")

    @property
    def name(self) -> str:
        """What tells it from others; a painted one stays the same while it is painted."""
        return self.text.rpartition(":")[0] if self.painted else self.text


def chips(model: Model, question: Question) -> list[Chip]:
    """The edits of the view, each tried after those before it. What a link names in vain is left out, with a notice."""
    from transformer.edits import EditError

    found: list[Chip] = []
    made: tuple[Edit, ...] = ()
    asked = [part for part in session.settings().edits.split(JOINT) if part]
    refused = [f"Only {MOST} edits can be made at a time."] if len(asked) > MOST else []
    for part in asked[:MOST]:
        try:
            chip = replace(_chip(part.removeprefix(OFF)), on=not part.startswith(OFF))
        except EditError as error:
            refused.append(f"An edit in the link cannot be read: {error}.")
            continue
        if any(chip.name == other.name for other in found):
            continue
        if chip.on:
            try:
                edits.said(model, question, (*made, chip.edit))
                made = (*made, chip.edit)
            except EditError as error:
                chip = replace(chip, error=sentence(str(error)))
        found.append(chip)
    if refused:
        session.notice(refused[0])
        keep(found)
    return found


def _chip(text: str) -> Chip:
    """A chip that is on. Raises EditError."""
    from transformer.edits import parse_edit

    edit = parse_edit(text)
    return Chip(edit.write(), True, edit)


def active(found: list[Chip]) -> tuple[Edit, ...]:
    """The edits that are made."""
    return tuple(chip.edit for chip in found if chip.on and not chip.error)


def keep(found: list[Chip]) -> bool:
    """Make these the edits of the view, if they fit into a link; whether they do."""
    written = JOINT.join(chip.written for chip in found)
    if len(written) > longest("edits"):
        session.notice("The link has no room for so many edits, or for so irregular a painting. Nothing was changed.")
        clicks.touch()
        return False
    session.update(edits=written)
    return True


# --- those there are


def words_of(model: Model, edit: Edit) -> str:
    """What an edit does; of an encoder-decoder with the stack of a head that its words would leave out."""
    both = model.config.model.architecture == "encoder-decoder"
    named = getattr(edit, "name", "") if both else ""
    return edit.words.replace(named, f"decoder {named}") if named.startswith("head ") else edit.words


def row(model: Model, found: list[Chip]) -> None:
    """The chips side by side, each with its switch and its cross; what is wrong with one stands in it."""
    with st.container(horizontal=True, gap="small"):
        for place, chip in enumerate(found):
            with st.container(border=True, gap=None, width="content", key=f"pill-{place}"):
                with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", width="content"):
                    controlled(
                        st.toggle,
                        words_of(model, chip.edit),
                        key=f"chip-{chip.name}",
                        value=chip.on,
                        picked=partial(_switch, found, chip),
                        width="content",
                    )
                    st.button(
                        f"Take away: {words_of(model, chip.edit)}",
                        key=f"cross-{chip.name}",
                        icon=":material/close:",
                        type="tertiary",
                        on_click=_take_away,
                        args=(found, chip),
                    )
                if chip.error:
                    st.error(plain(chip.error), icon=":material/error:")


def _switch(found: list[Chip], chip: Chip, on: bool) -> None:
    keep([replace(each, on=on) if each == chip else each for each in found])


@clicks.once
def _take_away(found: list[Chip], chip: Chip) -> None:
    keep([each for each in found if each != chip])


@clicks.once
def toggle(found: list[Chip], text: str) -> None:
    """Make an edit that is not there, and take away one that is."""
    rest = [chip for chip in found if chip.text != text]
    if len(rest) == len(found):
        if len(found) == MOST:
            session.notice(f"Only {MOST} edits can be made at a time: take one away first.")
            return
        rest = [*found, _chip(text)]
    keep(rest)


# --- another


def add(model: Model, question: Question, found: list[Chip], heads: list[Head]) -> None:
    """The line with which an edit is added: what, where, how much."""
    from transformer.edits import EDITS, HeadEdit, kinds

    left, middle, right, button = st.columns([3, 2, 2, 1.2], vertical_alignment="bottom")
    steps = [step for step in session.choices()[model.name].snapshots if step != model.step]
    missing = {"patch-step": not steps, "expected": not model.task.points}
    offered = [kind for kind in kinds() if not missing.get(kind)]
    if st.session_state.get("edit-kind") not in offered:
        st.session_state["edit-kind"] = offered[0]
    kind = left.selectbox("Edit", offered, key="edit-kind", format_func=lambda kind: EDITS[kind].title)
    parts = [kind]
    if kind == "swap":
        places = len(model.task.target_names(model.task.length))
        first = middle.number_input("Position", 1, places, value=1, key="edit-first")
        second = right.number_input("and position", 1, places, value=min(2, places), key="edit-second")
        parts.append(f"{first},{second}")
    elif issubclass(EDITS[kind], HeadEdit):
        head = _head(middle, heads)
        parts += [str(head), *_more(kind, head, model, question, right)]
    else:
        parts += _numbers(kind, middle)
    button.button(
        "Add", on_click=_added, args=(found, ":".join(parts)), icon=":material/add:", width="stretch", type="primary"
    )
    if error := st.session_state.pop("edit_error", ""):
        st.error(plain(error), icon=":material/error:")


def _head(place: DeltaGenerator, heads: list[Head]) -> Head:
    if st.session_state.get("edit-head") not in heads:
        st.session_state["edit-head"] = heads[0]
    picked: Head = place.selectbox("of", heads, key="edit-head", format_func=_called)
    return picked


def _called(head: Head) -> str:
    """A head as the chips call it."""
    from transformer.edits.heads.zero import AblateHead

    return AblateHead(head.site, head.index).name


def _more(kind: str, head: Head, model: Model, question: Question, place: DeltaGenerator) -> list[str]:
    """What must be known beside the head, as the edit's text has it."""
    match kind:
        case "patch-step":
            steps = [step for step in session.choices()[model.name].snapshots if step != model.step]
            if st.session_state.get("edit-step") not in steps:
                st.session_state["edit-step"] = steps[-1]
            return [str(place.selectbox("as at step", steps, key="edit-step"))]
        case "patch-input":
            return [input_of_patch(model, question, place)]
        case "painted":
            return [_first_painting(model.sample(question, own_words=False).attentions[head.site], head)]
    return _numbers(kind, place)


def _numbers(kind: str, place: DeltaGenerator) -> list[str]:
    """The numbers of an edit, as it offers them itself."""
    from transformer.edits import EDITS

    offered = {field.name: field.metadata for field in fields(EDITS[kind]) if field.metadata}
    values = [place.number_input(**offer, key=f"edit-{kind}-{name}") for name, offer in offered.items()]
    return [f"{value:.10g}" for value in values]


def _first_painting(attention: Attention, head: Head) -> str:
    """The cells to begin with: the key that each query looks at most. Its size only, where no more can be painted."""
    from transformer.edits.patterns.painted import ForcePattern

    pattern = attention.pattern[head.index]
    cells = (pattern == pattern.max(axis=1, keepdims=True)) & attention.mask
    return "" if _why_not(attention) else ForcePattern.of(cells, head.site, head.index).more()


@clicks.once
def _added(found: list[Chip], text: str) -> None:
    from transformer.edits import EditError

    try:
        chip = _chip(text)
    except EditError as error:
        st.session_state.edit_error = sentence(str(error))
        return
    if len(found) >= MOST:
        st.session_state.edit_error = f"Only {MOST} edits can be made at a time: take one away first."
        return
    keep([*(other for other in found if other.name != chip.name), chip])


# --- painted


def canvas(model: Model, question: Question, found: list[Chip], chip: Chip, *, height: int) -> None:
    """Where a head is told to look, to be painted on."""
    edit: ForcePattern = chip.edit  # type: ignore[assignment]
    attention = model.sample(question, own_words=False).attentions.get(edit.site.rpartition(".")[0])
    if attention is None or (chip.error and edit.chosen.shape != attention.mask.shape):
        st.info("This was painted for another model or another length. Take it away and add it again.")
        return
    if reason := _why_not(attention):
        st.info(reason)
        return

    def painted(cells: np.ndarray) -> bool:
        from transformer.edits.patterns.painted import ForcePattern

        text = ForcePattern.of(cells, edit.site, edit.head).write()
        return keep([replace(each, text=text) if each == chip else each for each in found])

    cells, seen = edit.chosen, from_afar(attention, words=not model.task.lawful)
    said = sentence(f"you choose where {edit.name} looks in {int(cells.any(axis=1).sum())} of {len(cells)} rows")
    Painter(
        cells,
        attention.queries,
        attention.keys,
        key=f"paint-{chip.name}",
        alt=said,
        link=LINK,
        height=height,
        words=PATTERN,
        squares=squares(seen),
    ).draw(painted)
    said += (
        " In such a row it looks evenly at the painted keys that the mask allows. A row without a painted "
        "key stays as it is."
    )
    st.caption(said if seen.factor == 1 else f"{said} {squares_sentence(seen.factor, 'only some cells are painted')}")


def _why_not(attention: Attention) -> str:
    """Why an attention cannot be painted on; empty where it can."""
    rows, columns = attention.whole or attention.mask.shape
    if rows == columns:
        return f"Painting is for up to {LARGEST} positions, and this input has {rows}." if rows > LARGEST else ""
    return f"Only a square pattern can be painted, and this one has {rows} rows and {columns} columns."
