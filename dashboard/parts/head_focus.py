"""The head in focus: its pattern, what its attention does, and how it differs from another one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from dashboard import theme
from dashboard.components.appearance import is_dark, palette
from dashboard.components.focus import Ink, Subject, View, Whole, focus
from dashboard.components.head_grid import downsampled
from dashboard.components.origin import Maker
from dashboard.models.model import Model
from dashboard.parts.heads import LINK, heads_of
from dashboard.parts.long_inputs import from_afar
from dashboard.view import session
from transformer.analysis.findings import Attention, Detail, Head

WINDOW = 64
"""Tokens a side of the part of a long input that is shown cell by cell."""
LONG = 128
"""Tokens from which only a window is shown cell by cell."""
FINEST = 512
"""Blocks a side of the picture of the whole, at most."""


def glance(model: Model, question: np.ndarray, head: Head, *, key: str, height: int) -> str:
    """Draw the pattern of a head from the sample alone, without another pass: of a long input, all of it from afar.

    Returns what a cell of it stands for, as a sentence; nothing where it is one query and one key.
    """
    seen = from_afar(model.sample(question).attentions[head.site], LONG, words=not model.task.lawful)
    strongest = "" if seen.factor == 1 else f"strongest of {seen.factor} × {seen.factor}"
    title = f"Pattern: {strongest}" if strongest else "Pattern"
    view = View("pattern", title, seen.pattern[head.index], 0.0, 1.0, theme.pattern_colours(is_dark()))
    draw(model, question, head, seen, [view], key=key, says=True, height=height)
    return f"Each cell: the {strongest}. " if strongest else ""


def draw(
    model: Model,
    question: np.ndarray,
    head: Head,
    detail: Detail | Attention,
    views: list[View],
    *,
    key: str,
    says: bool,
    height: int = 380,
    makers: list[Maker] | None = None,
) -> None:
    """Draw matrices of a head, or of a long input the window of them that the view names."""
    first = _window(detail, detail.pattern[head.index])
    shown = (slice(first[0], first[0] + WINDOW), slice(first[1], first[1] + WINDOW)) if first else ...
    is_pattern = views[0].name == "pattern"
    alt = f"Head {head.short}, {views[0].name}. {strongest(views[0].values, detail)}"
    whole = None
    if first and is_pattern:
        coarse = -(-max(detail.mask.shape) // FINEST)
        whole = Whole(downsampled(views[0].values, coarse), downsampled(detail.mask, coarse), coarse)
    factor = _tokens_a_cell(detail)
    marks, query, colours = _marks(model, question, head, detail), session.settings().query, palette()

    def locked() -> None:
        row = st.session_state[key]["lock"]
        if row is not None:
            session.update(query=row * factor + 1 if 0 <= row < len(detail.queries) else None)

    def moved() -> None:
        if place := st.session_state[key]["window"]:
            session.update(window=f"{int(place['row']) + 1},{int(place['column']) + 1}")

    focus(
        Subject(
            head=str(head),
            name=head.short,
            number=heads_of(model.sample(question).attentions).index(head),
            queries=detail.queries,
            keys=detail.keys,
            mask=detail.mask[shown],
            first=first or (0, 0),
            marks=None if marks is None else marks[shown],
            says=_says(model, question, detail) if says else None,
            factor=factor,
        ),
        [replace(view, values=view.values[shown]) for view in views],
        key=key,
        alt=alt,
        ink=Ink(
            dark=colours.dark,
            accent=colours.accent,
            mark=colours.chance,
            muted=colours.muted,
            forbidden=theme.rgb(colours.forbidden),
            scale=theme.pattern_colours(is_dark()),
        ),
        whole=whole,
        locked=(query - 1) // factor if query is not None and query <= factor * len(detail.queries) else None,
        link=LINK,
        height=height,
        arcs=is_pattern,
        by_row=session.settings().by_row,
        makers=makers,
        on_lock=locked,
        on_window=moved,
    )


def strongest(values: np.ndarray, detail: Detail | Attention) -> str:
    """The greatest value, as a sentence, leaving out rows that have a single key to look at."""
    row, column = _strongest(values, detail)
    factor = _tokens_a_cell(detail)
    at = "at {}" if factor == 1 else "from {} on"
    who, whom = (
        f"'{names[place]}' {at.format(place * factor + 1)}"
        for names, place in ((detail.queries, row), (detail.keys, column))
    )
    return f"Most of all, query {who} reads {whom}: {values[row, column]:.2f}."


def _tokens_a_cell(detail: Detail | Attention) -> int:
    """How many tokens a side of a cell stands for."""
    return detail.factor if isinstance(detail, Attention) else 1


def _strongest(values: np.ndarray, detail: Detail | Attention) -> tuple[int, int]:
    shown = np.where(detail.mask & (detail.mask.sum(axis=1) > 1)[:, None], values, -1.0)
    row, column = np.unravel_index(int(shown.argmax()), shown.shape)
    return int(row), int(column)


def _window(detail: Detail | Attention, pattern: np.ndarray) -> tuple[int, int] | None:
    """Where the window begins, of all that is drawn of a head: around the place that the view names, or around the
    strongest cell of its pattern; None if all fits."""
    shape = detail.mask.shape
    if max(shape) <= LONG:
        return None
    text = session.settings().window
    try:
        row, column = (int(part) - 1 for part in text.split(",")) if text else (-1, -1)
    except ValueError:
        row = shape[0]
    if text and not (0 <= row < shape[0] and 0 <= column < shape[1]):
        session.notice(f"There is no place “{text[:30]}” in this input; the window is on the strongest cell.")
        session.update(window="")
        text = ""
    if not text:
        row, column = _strongest(pattern, detail)
    return _begin(row, shape[0]), _begin(column, shape[1])


def _begin(place: int, size: int) -> int:
    """Where a window begins that has `place` in its middle, as far as there is room."""
    return min(max(0, place - WINDOW // 2), max(0, size - WINDOW))


def _marks(model: Model, question: np.ndarray, head: Head, detail: Detail | Attention) -> np.ndarray | None:
    """The cells where the answer stands, for the heads that can read it."""
    expected = model.task.expected_keys(question)
    alone = model.config.model.architecture == "encoder"
    fits = expected.shape == detail.mask.shape and (alone or not head.site.startswith("encoder."))
    return expected & detail.mask if fits else None


def _says(model: Model, question: np.ndarray, detail: Detail | Attention) -> tuple[str, ...] | None:
    sample = model.sample(question)
    return sample.predicted if detail.queries == sample.read else None
