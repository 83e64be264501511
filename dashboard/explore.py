"""The head in focus: its pattern, what its attention does, and how it differs from another one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from dashboard import closer, session, theme
from dashboard.afar import from_afar
from dashboard.attention import LINK, heads_of, is_dark, palette
from dashboard.components.focus import Ink, Subject, View, Whole, focus
from dashboard.components.head_grid import downsampled
from dashboard.components.origin import Maker
from dashboard.models import Model
from dashboard.reference import reference
from transformer.analysis.findings import Attention, Detail, Head

WINDOW = 64
"""Tokens a side of the part of a long input that is shown cell by cell."""
LONG = 128
"""Tokens from which only a window is shown cell by cell."""
FINEST = 512
"""Blocks a side of the picture of the whole, at most."""


def pattern(model: Model, question: np.ndarray, head: Head, mean: np.ndarray | None = None) -> None:
    """Draw the pattern of a head large, with its arcs, and how it differs from what the view names.

    Or its `mean` over many sequences, float [query, key].
    """
    detail = closer.detail(model, question, head.site)
    values = detail.pattern[head.index] if mean is None else mean
    title = "Pattern" if mean is None else "Mean pattern"
    views = [View("pattern", title, values, 0.0, 1.0, theme.pattern_colours(is_dark()))]
    other = None if mean is not None else reference(model, question, head, values.shape)
    if other is not None:
        difference = values - other.pattern
        most = _most(np.abs(difference), detail)
        colours = theme.signed_colours(is_dark())
        views.append(View("difference", f"Pattern − {other.words}", difference, -most, most, colours))
    makers = [model.maker(), other.maker] if other is not None and other.maker != model.maker() else None
    _draw(model, question, head, detail, views, key="head-pattern", says=mean is None, makers=makers)


def contribution(model: Model, question: np.ndarray, head: Head) -> None:
    """Draw what a head's readings write into the residual stream: attention is not effect."""
    detail = closer.detail(model, question, head.site)
    values = detail.contribution(head.index)
    colours = theme.pattern_colours(is_dark())
    formula = "‖pattern · v‖" if model.config.model.recurrent else "‖pattern · v · W_O‖"
    view = View("contribution", f"Contribution: {formula}", values, 0.0, _most(values, detail), colours)
    _draw(model, question, head, detail, [view], key="head-contribution", says=True)


def glance(model: Model, question: np.ndarray, head: Head, *, key: str, height: int) -> str:
    """Draw the pattern of a head from the sample alone, without another pass: of a long input, all of it from afar.

    Returns what a cell of it stands for, as a sentence; nothing where it is one query and one key.
    """
    seen = from_afar(model.sample(question).attentions[head.site], LONG, words=not model.task.lawful)
    strongest = "" if seen.factor == 1 else f"strongest of {seen.factor} × {seen.factor}"
    title = f"Pattern: {strongest}" if strongest else "Pattern"
    view = View("pattern", title, seen.pattern[head.index], 0.0, 1.0, theme.pattern_colours(is_dark()))
    _draw(model, question, head, seen, [view], key=key, says=True, height=height)
    return f"Each cell: the {strongest}. " if strongest else ""


def _most(values: np.ndarray, detail: Detail) -> float:
    """The end of a scale: the greatest value that is allowed; 1 where all are zero."""
    return float(values[detail.mask].max(initial=0.0)) or 1.0


def _draw(
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
