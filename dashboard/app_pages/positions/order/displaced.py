"""What a model makes of other positions than its tokens have: shifted, turned, swapped, shuffled or removed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from dashboard.app_pages.positions.order.figures.interventions import intervention_bars
from dashboard.app_pages.positions.order.settings import OrderSettings
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.numbers import signed
from dashboard.parts.prose import plain, sentence
from dashboard.parts.widgets import controlled
from dashboard.parts.yardstick import SAME, Yardstick
from dashboard.view import session
from transformer.analysis.intervals import rivals
from transformer.foundation.claims import claim
from transformer.foundation.foreign import shortened

if TYPE_CHECKING:
    from transformer.edits import Edit


SHIFT, TURN, SWAP, SHUFFLE, REMOVE = "places-shift", "places-turn", "swap", "places-shuffle", "unplaced"
NAMES = {SHIFT: "Shift all", TURN: "Cyclic shift", SWAP: "Swap two", SHUFFLE: "Shuffle", REMOVE: "Remove"}
"""The interventions, by the word that begins their text."""
SHIFTS = (-3, -2, -1, 1, 2, 3)
MOST_BY = 99


def asked(default: str) -> str:
    """The intervention of the view; what a link names in vain falls back, with a notice."""
    from transformer.edits import EditError, parse_edit

    text = session.mine(OrderSettings).order
    if not text:
        return default
    try:
        text = parse_edit(text).write()
    except EditError:
        session.notice("The change that the link names cannot be read. The page shows its own instead.")
    else:
        if text.partition(":")[0] in NAMES:
            return text
        session.notice(f"This page moves positions; “{shortened(text, 40)}” does something else.")
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
            "Change the positions",
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


def lesson(yard: Yardstick, kind: str, before: Any, after: Any) -> str:
    """What an intervention shows, from the numbers."""
    kept = abs(yard.mean(before) - yard.mean(after)) < SAME
    if kind == SHIFT:
        tail = "nothing is lost." if kept else "the model uses the positions themselves, not only distances."
        return f"All distances are unchanged, {'and' if kept else 'so'} {tail}"
    if kept:
        return "It does not use what was changed."
    if kind == REMOVE:
        return f"What it still {yard.gets} comes from the mask and from which tokens there are."
    return yard.lost(before, after)


@claim
def without(yard: Yardstick) -> str:
    """What the model loses without its positions, in a sentence."""
    yard = yard.quick()
    return yard.change_of_mean("Without positions", yard.measured(), yard.measured(edits_of(REMOVE)))


def edits_of(text: str) -> tuple[Edit, ...]:
    """An intervention as the edits of a measurement."""
    from transformer.edits import parse_edit

    return (parse_edit(text),)


def interventions(yard: Yardstick) -> None:
    """The section of a page: one intervention with what it does by position, and all kinds beside each other."""
    from transformer.edits import EditError

    yard = yard.quick()
    try:
        yard.measured(edits_of(f"{SHIFT}:1"))
        moved = SHIFT
    except EditError:
        moved = TURN
    text = asked(f"{moved}:1")
    controls(text, len(yard.model.task.target_names(yard.length)))
    before = yard.measured()
    left, right = st.container(key="stacked-moved").columns([1.25, 1], gap="medium")
    with left:
        try:
            made = edits_of(text)
            after, old = yard.measured(made), before
        except EditError as error:
            turn = " Use a cyclic shift instead." if text.startswith(SHIFT) else ""
            st.info(f"{sentence(plain(str(error)))}{turn}", icon=":material/info:")
            after, old, words = before, None, "Nothing was changed."
        else:
            st.markdown(f"**{yard.change_of_mean(f'With {made[0].words}', before, after)}**")
            words = lesson(yard, text.partition(":")[0], before, after)
        yard.by_position(after, old, key="order-accuracy", height=320, words=words)
    with right:
        _summary(yard, moved, text, yard.mean(before))


def _summary(yard: Yardstick, moved: str, text: str, was: float) -> None:
    """All kinds beside each other; a click chooses one."""
    from transformer.edits import EditError

    menu = {f"{moved}:{by}": signed(by, 0, plus=True) for by in SHIFTS}
    menu |= {f"{SHUFFLE}:0": "shuf-\nfled", REMOVE: "re-\nmoved"}
    values, sentences, ends = [], [], []
    for each in menu:
        try:
            made = edits_of(each)
            after = yard.measured(made)
            values.append(yard.mean(after))
            ends.append(sorted(yard.worse * end for end in yard.interval(after)))
            sentences.append(f"{made[0].words}: {values[-1]:.3f}{yard.unit}")
        except EditError as error:
            values.append(np.nan)
            ends.append([np.nan, np.nan])
            sentences.append(str(error))
    keys = list(menu)

    def clicked() -> None:
        click = st.session_state["order-summary"]["click"]
        place = click.get("customdata") if click else None
        if isinstance(place, int) and 0 <= place < len(keys):
            session.update(order=keys[place])

    how = "cyclically shifted" if moved == TURN else "shifted"
    words = "No position can be moved in this model."
    if np.isfinite(values).any():
        worst = rivals(yard.worse * np.array(values), *np.array(ends).T).tolist()
        kinds = f"Positions {how} by −3 to +3, shuffled, removed"
        called = [edits_of(keys[each])[0].words for each in worst]
        words = yard.furthest(kinds, called, int(np.isfinite(values).sum()), values[worst[0]], was)
    st.markdown("**All changes side by side**")
    figure = coloured(
        intervention_bars,
        np.array(values),
        list(menu.values()),
        sentences,
        title=f"positions {how} by",
        unit=yard.quantity,
        before=was,
        against=yard.against,
        chosen=keys.index(text) if text in keys else None,
    )
    plot(figure, key="order-summary", alt=words, height=320, on_click=clicked)
    turned = (
        " Its table ends at its last position, so what is shifted past one end comes in at the other."
        if moved == TURN
        else ""
    )
    st.caption(f"{words}{turned}{yard.over()} Click a bar to see it by {yard.by}.")
