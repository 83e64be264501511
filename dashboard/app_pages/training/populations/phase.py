"""Two settings against each other: where training turns from failure to success."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from dashboard.app_pages.training.populations import choice, words
from dashboard.app_pages.training.populations.figures.phase import phase_heatmap, phase_height
from dashboard.app_pages.training.populations.measured import Combination, Counted
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.parts.prose import plain
from dashboard.parts.widgets import bound_choice
from transformer.experiments.populations.statistics import steps_until_solved
from transformer.experiments.populations.words import number
from transformer.foundation.foreign import shortened

COLOURS = {"share": "share solved", "steps": "median steps"}


def phase(found: Counted, chosen: Combination, makers: list[Maker]) -> None:
    """The section of the page, where two settings or more vary."""
    varied = list(found.varied)
    if len(varied) < 2:
        return
    st.markdown("**Two settings against each other.** A click on a cell chooses it for the pictures above")
    across, up, colour = _axes(varied)
    cells = [
        [found.of({**chosen.settings, up: down, across: right}) for right in found.varied[across]]
        for down in found.varied[up]
    ]
    values, texts, ends = _values(cells, colour)
    figure = coloured(
        phase_heatmap,
        values,
        texts,
        [[words.pointed(each) for each in row] for row in cells],
        _axis(found, across),
        _axis(found, up),
        ends=ends,
        chosen=next((i, j) for i, row in enumerate(cells) for j, each in enumerate(row) if each is chosen),
    )
    said = words.phase_sentence([each for row in cells for each in row], colour)
    key = "populations-phase"

    def clicked() -> None:
        click = st.session_state[key]["click"] or {}
        row, column = click.get("row"), click.get("column")
        if isinstance(row, int) and isinstance(column, int) and 0 <= row < len(cells) and 0 <= column < len(cells[0]):
            choice.choose(found, cells[row][column].settings)

    plot(
        figure,
        key=key,
        alt=f"{words.capital(COLOURS[colour])}, by {words.setting_name(across)} and {words.setting_name(up)}. {said}",
        height=phase_height(len(cells)),
        on_click=clicked,
        makers=makers,
    )
    rest = {name: value for name, value in chosen.settings.items() if name not in (across, up)}
    others = f" All cells have {words.called(rest)}." if rest else ""
    grey = f" Grey: {GREY[colour]}." if np.isnan(values).any() else ""
    st.caption(plain(f"{said}{grey}{others}"))


GREY = {
    "share": "no training could be counted",
    "steps": "fewer than half of the seeds are solved, or no training could be counted",
}


def _axes(varied: list[str]) -> tuple[str, str, str]:
    """Which setting is drawn from left to right, which downwards, and what the colour says."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        across = _pick("Across", "phase_across", varied, varied[-1])
        rest = [name for name in varied if name != across]
        up = _pick("Down", "phase_up", rest, rest[0])
        colour = bound_choice(
            st.segmented_control, "Colour", "phase_colour", list(COLOURS), "share", format_func=COLOURS.__getitem__
        )
    return across, up, colour


def _pick(label: str, field: str, menu: list[str], default: str) -> str:
    """A setting for an axis."""

    def missing(name: str) -> str:
        return f"The setting “{shortened(name, 30)}” cannot be drawn there; this is {words.setting_name(default)}."

    title = words.setting_title
    found: str = bound_choice(st.selectbox, label, field, menu, default, missing=missing, format_func=title, width=200)
    return found


def _axis(found: Counted, name: str) -> tuple[str, list[str]]:
    """The title of an axis, and its values."""
    return words.setting_name(name), [words.value_name(name, value) for value in found.varied[name]]


def _values(cells: list[list[Combination]], colour: str) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """The numbers of the cells, what stands in them, and the ends of the colours."""
    values = np.full((len(cells), len(cells[0])), math.nan)
    texts = np.full(values.shape, "–", dtype=object)
    for i, row in enumerate(cells):
        for j, each in enumerate(row):
            if not each.finished:
                continue
            steps = steps_until_solved(each.rows)
            if colour == "share":
                values[i, j], texts[i, j] = steps.share, f"{steps.share:.2f}"
            elif math.isfinite(steps.median):
                values[i, j], texts[i, j] = steps.median, number(steps.median)
            else:
                texts[i, j] = f"> {max(row.step for row in each.finished):,}"
    if colour == "share" or np.isnan(values).all():
        return values, texts, (0.0, 1.0)
    return values, texts, (0.0, float(np.nanmax(values)))
