"""The cost of a text whose tokens are given other positions, in nats a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.look_inside.order import displaced
from dashboard.components.plot import coloured, plot
from dashboard.figures.text_costs import place_bars
from dashboard.models.edits import FEW_TOKENS, reading
from dashboard.models.model import Model
from dashboard.parts.prose import sentence
from dashboard.parts.text import SAME, by_place, change
from dashboard.view import session

if TYPE_CHECKING:
    from transformer.analysis.accuracy.reading import Reading


LONGEST = 256
"""Tokens of the longest windows that are read: several fit into what answers a click."""


def window(model: Model) -> int:
    """How long the windows are that are read here."""
    return min(model.task.length, LONGEST)


def read(model: Model, text: str = "") -> Reading:
    """What reading costs after an intervention, or without one. Raises EditError where it cannot be made."""
    from transformer.edits import parse_edit

    edits = (parse_edit(text),) if text else ()
    return reading(model, edits, window(model), FEW_TOKENS)


def _can(model: Model, text: str) -> bool:
    from transformer.edits import EditError

    try:
        read(model, text)
    except EditError:
        return False
    return True


def headline(model: Model) -> str:
    """What the model loses without its positions, in a sentence."""
    what = f"Without its {model.config.model.positions} positions"
    return change(what, read(model), read(model, displaced.REMOVE))


def interventions(model: Model) -> None:
    """The section of a page: one intervention with its loss by place, and all kinds beside each other."""
    from transformer.edits import EditError, parse_edit

    moved = displaced.SHIFT if _can(model, f"{displaced.SHIFT}:1") else displaced.TURN
    text = displaced.asked(f"{moved}:1")
    displaced.controls(text, window(model))
    before = read(model)
    left, right = st.container(key="stacked-moved").columns([1.25, 1], gap="medium")
    with left:
        try:
            after = read(model, text)
        except EditError as error:
            st.info(sentence(str(error)), icon=":material/info:")
            by_place(model, before, None, key="order-accuracy", height=320, words="Nothing was changed.")
        else:
            st.markdown(f"**{change(f'With {parse_edit(text).words}', before, after)}**")
            words = lesson(text.partition(":")[0], before, after)
            by_place(model, after, before, key="order-accuracy", height=320, words=words)
    with right:
        _summary(model, moved, text, before)


def lesson(kind: str, before: Reading, after: Reading) -> str:
    """What an intervention shows, from the numbers."""
    kept = abs(float(after.nats.mean() - before.nats.mean())) < SAME
    if kind == displaced.SHIFT:
        return (
            "All distances are as they were, and nothing is lost."
            if kept
            else "All distances are as they were: it goes by the places themselves."
        )
    if kept:
        return "It does not go by what was changed."
    if kind == displaced.REMOVE:
        return "What it still guesses it knows from the mask and from which tokens there are."
    return "The tokens are the same, and so is what may be seen: it goes by where they stand."


def _summary(model: Model, moved: str, text: str, before: Reading) -> None:
    """All kinds beside each other; a click chooses one."""
    from transformer.edits import EditError, parse_edit

    menu = {f"{moved}:{by}": f"{by:+d}".replace("-", "−") for by in displaced.SHIFTS}
    menu |= {f"{displaced.SHUFFLE}:0": "shuf-\nfled", displaced.REMOVE: "re-\nmoved"}
    values, sentences = [], []
    for each in menu:
        try:
            values.append(float(read(model, each).nats.mean()))
            sentences.append(f"{parse_edit(each).words}: {values[-1]:.3f} nats a token")
        except EditError as error:
            values.append(np.nan)
            sentences.append(str(error))
    keys, was = list(menu), float(before.nats.mean())

    def clicked() -> None:
        click = st.session_state["order-summary"]["click"]
        place = click.get("customdata") if click else None
        if isinstance(place, int) and 0 <= place < len(keys):
            session.update(order=keys[place])

    st.markdown("**All kinds beside each other**")
    how = "turned" if moved == displaced.TURN else "shifted"
    words = "No position can be moved in this model."
    if np.isfinite(values).any():
        worst = int(np.nanargmax(values))
        words = f"A token costs most with {parse_edit(keys[worst]).words}: {values[worst]:.2f} nats, {was:.2f} before."
    figure = coloured(
        place_bars,
        np.array(values),
        list(menu.values()),
        sentences,
        title="nats a token",
        across=f"positions {how} by",
        against=(was, "before"),
    )
    plot(figure, key="order-summary", alt=words, height=320, on_click=clicked)
    ends = (
        " A learned table has no place beyond its ends, so they come in at the other."
        if moved == displaced.TURN
        else ""
    )
    st.caption(f"{words}{ends} Click a bar to see it by place.")
