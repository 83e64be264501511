"""Accuracy of a model whose tokens are given other positions: shifted, turned, swapped, shuffled or removed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.look_inside.order.figures.interventions import intervention_bars
from dashboard.components.plot import coloured, plot
from dashboard.models import edits
from dashboard.models.model import Model
from dashboard.parts import claims
from dashboard.parts.learning import accuracy_bars
from dashboard.parts.prose import sentence
from dashboard.parts.widgets import controlled
from dashboard.view import session
from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.result import Accuracy

if TYPE_CHECKING:
    from transformer.edits import Edit


SHIFT, TURN, SWAP, SHUFFLE, REMOVE = "places-shift", "places-turn", "swap", "places-shuffle", "unplaced"
NAMES = {SHIFT: "Shift all", TURN: "Turn round", SWAP: "Swap two", SHUFFLE: "Shuffle", REMOVE: "Remove"}
"""The interventions, by the word that begins their text."""
SHIFTS = (-3, -2, -1, 1, 2, 3)
SAME = 0.005
"""A smaller change of accuracy is none."""
FALLEN = 0.5
"""What a target loses that is named as lost."""
MOST_BY = 99


def knowable(model: Model, length: int) -> np.ndarray:
    """The symbols of the answer that can be known under the model's mask, bool [target]; all targets if none can."""
    ceiling, groups = ceilings.ceiling(model.config, length).accuracy, np.array(model.task.groups(length))
    known = (ceiling > model.task.chance + SAME) & (groups != "separator")
    return known if known.any() else np.ones_like(known)


def accuracy_after(model: Model, text: str, length: int) -> Accuracy:
    """Accuracy by position after an intervention. Raises EditError where it cannot be made."""
    from transformer.edits import parse_edit

    return edits.accuracy(model, (parse_edit(text),), length)


def can(model: Model, text: str, length: int) -> bool:
    """Can this intervention be made on this model?"""
    from transformer.edits import EditError

    try:
        accuracy_after(model, text, length)
    except EditError:
        return False
    return True


def asked(default: str) -> str:
    """The intervention of the view; what a link names in vain falls back, with a notice."""
    from transformer.edits import EditError, parse_edit

    text = session.settings().order
    if not text:
        return default
    try:
        text = parse_edit(text).write()
    except EditError:
        session.notice("The link's intervention cannot be read; this is the page's own.")
    else:
        if text.partition(":")[0] in NAMES:
            return text
        session.notice(f"This page moves positions; “{text[:40]}” does something else.")
    session.update(order="")
    return default


def controls(text: str, places: int) -> None:
    """Which intervention: its kind, and its numbers."""
    kind, *_ = text.partition(":")
    numbers, shown = [int(number) for number in re.findall(r"-?\d+", text)], list[int]()
    # What one kind starts from, when it is picked.
    starts = {SHIFT: f"{SHIFT}:1", TURN: f"{TURN}:1", SWAP: f"swap:1,{max(2, places)}"}
    starts |= {SHUFFLE: f"{SHUFFLE}:0", REMOVE: REMOVE}

    def written(place: int, value: int | None) -> None:
        if value is None:
            return
        values = [*shown]
        values[place] = value
        # On the way past what changes nothing: from 1 to −1, and a place past its partner.
        if kind in (SHIFT, TURN) and values == [0]:
            values = [-1 if numbers[0] > 0 else 1]
        elif kind == SWAP and values[0] == values[1]:
            values = numbers[::-1]
        session.update(order=f"{kind}:{','.join(str(int(value)) for value in values)}")

    def number(label: str, name: str, low: int, high: int) -> None:
        place = len(shown)
        shown.append(min(max(numbers[place], low), high))
        controlled(
            st.number_input,
            label,
            low,
            high,
            key=f"control-order-{name}",
            value=shown[place],
            picked=lambda value: written(place, value),
            step=1,
            width=140,
        )

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        controlled(
            st.segmented_control,
            "Tell it other positions",
            list(NAMES),
            key="control-order",
            value=kind,
            picked=lambda kind: session.update(order=starts.get(kind, text)),
            format_func=NAMES.__getitem__,
        )
        if kind in (SHIFT, TURN):
            number("by", "by", -MOST_BY, MOST_BY)
        elif kind == SWAP:
            number("Position", "first", 1, max(2, places))
            number("and position", "second", 1, max(2, places))
        elif kind == SHUFFLE:
            number("Draw", "seed", 0, 10**9 - 1)


def lesson(kind: str, before: Accuracy, after: Accuracy, known: np.ndarray) -> str:
    """What an intervention shows, from the numbers."""
    lost = [name for name, fell in zip(after.names, before.mean - after.mean > FALLEN, strict=True) if fell]
    was, now = before.mean[known].mean(), after.mean[known].mean()
    kept = abs(was - now) < SAME
    if kind == SHIFT:
        return (
            "All distances are as they were, and nothing is lost."
            if kept
            else "All distances are as they were: it goes by the places themselves."
        )
    if kind == REMOVE and not kept:
        return "What it still gets right it knows from the mask and from which tokens there are."
    if kept:
        return "It does not go by what was changed."
    if not lost:
        return "Every place is still told, but of another token."
    if set(lost) >= {name for name, each in zip(after.names, known, strict=True) if each}:
        return "All that can be known is lost, though every place is still told: it is told of another token."
    return f"Lost: {', '.join(lost)}. Every place is still told, but of another token."


def heading(edit: Edit, was: float, now: float) -> str:
    """The change in a sentence."""
    what = f"With {edit.words}"
    if abs(was - now) < SAME:
        return f"{what} the answer keeps its {now:.2f}."
    return f"{what} the answer {'falls' if now < was else 'rises'} from {was:.2f} to {now:.2f}."


def interventions(model: Model, length: int) -> None:
    """The section of a page: one intervention with its accuracy by position, and all kinds beside each other."""
    from transformer.edits import EditError, parse_edit

    places = len(model.task.target_names(length))
    first = f"{SHIFT}:1" if can(model, f"{SHIFT}:1", length) else f"{TURN}:1"
    text = asked(first)
    controls(text, places)
    known = knowable(model, length)
    before = edits.accuracy(model, (), length)
    left, right = st.container(key="stacked-moved").columns([1.25, 1], gap="medium")
    with left:
        try:
            after = accuracy_after(model, text, length)
        except EditError as error:
            st.info(f"{sentence(str(error))} {_instead(text)}", icon=":material/info:")
            _bars(model, before, None, "Nothing was changed.", length)
        else:
            said = heading(parse_edit(text), before.mean[known].mean(), after.mean[known].mean())
            st.markdown(f"**{said}**")
            _bars(model, after, before, f"{lesson(text.partition(':')[0], before, after, known)}", length)
    with right:
        _summary(model, text, length, before, known)


def _instead(text: str) -> str:
    return "Turn the positions round in place of shifting them." if text.startswith(SHIFT) else ""


def _bars(model: Model, after: Accuracy, before: Accuracy | None, words: str, length: int) -> None:
    figure = accuracy_bars(model, after, length, before=None if before is None else before.mean)
    plot(figure, key="order-accuracy", alt=f"Accuracy by position. {words}", height=320)
    st.caption(f"{words} {after.sequences:,} fresh sequences of length {length}.{claims.read(model)}")


def _summary(model: Model, text: str, length: int, before: Accuracy, known: np.ndarray) -> None:
    """All kinds beside each other; a click chooses one."""
    from transformer.edits import EditError, parse_edit

    moved = SHIFT if any(can(model, f"{SHIFT}:{by}", length) for by in SHIFTS) else TURN
    menu = {f"{moved}:{by}": f"{by:+d}".replace("-", "−") for by in SHIFTS}
    menu |= {f"{SHUFFLE}:0": "shuf-\nfled", REMOVE: "re-\nmoved"}
    values, sentences = [], []
    for each in menu:
        try:
            values.append(float(accuracy_after(model, each, length).mean[known].mean()))
            sentences.append(f"{parse_edit(each).words}: {values[-1]:.3f}")
        except EditError as error:
            values.append(np.nan)
            sentences.append(str(error))
    was = float(before.mean[known].mean())
    keys = list(menu)

    def clicked() -> None:
        click = st.session_state["order-summary"]["click"]
        place = click.get("customdata") if click else None
        if isinstance(place, int) and 0 <= place < len(keys):
            session.update(order=keys[place])

    worst = int(np.nanargmin(values)) if np.isfinite(values).any() else 0
    how = "turned" if moved == TURN else "shifted"
    words = f"Positions {how} by −3 to +3, shuffled, removed: it falls lowest with {parse_edit(keys[worst]).words}"
    words = f"{words}, to {values[worst]:.2f}."
    st.markdown("**All kinds beside each other**")
    figure = coloured(
        intervention_bars,
        np.array(values),
        list(menu.values()),
        sentences,
        title=f"positions {how} by",
        before=was,
        chance=before.chance,
        chosen=keys.index(text) if text in keys else None,
    )
    plot(figure, key="order-summary", alt=words, height=320, on_click=clicked)
    ends = " A learned table has no place beyond its ends, so they come in at the other." if moved == TURN else ""
    targets = "all targets" if known.all() else "the symbols of the answer that can be known"
    st.caption(f"{words}{ends} Mean over {targets}. Click a bar to see it by position.")
