"""The head in focus: its pattern, what its attention does, and how it differs from another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from dashboard.components.head_grid import downsampled
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.figures.head_focus import SIDE, Subject, View, Whole, head_figure
from dashboard.models.long_inputs import from_afar
from dashboard.models.model import Model
from dashboard.parts.heads import LINK, heads_of
from dashboard.server.streamlit_private import DeltaGenerator
from dashboard.view import session
from transformer.analysis.findings import Attention, Detail, Head
from transformer.foundation.claims import claim
from transformer.foundation.foreign import shortened

WINDOW = 64
"""Tokens a side of the part of a long input that is shown cell by cell."""
LONG = 128
"""Tokens from which only a window is shown cell by cell."""
FINEST = 128
"""Blocks a side of the picture of the whole, at most."""


def of_head(part: str) -> DeltaGenerator:
    """A place for what is said of the head in focus: it is pale while the figure already shows the pattern of the next
    head (web/plot/preview.js). `part` tells one from another.
    """
    return st.container(key=f"of-head-{part}")


def glance(model: Model, question: np.ndarray, head: Head, *, key: str, side: int, with_arcs: bool = True) -> str:
    """Draw the pattern of a head from the sample alone, without another pass: of a long input, all of it from afar.

    Returns what a cell of it stands for, as a sentence; nothing where it is one query and one key.
    """
    seen = from_afar(model.sample(question).attentions[head.site], LONG, words=not model.task.lawful)
    strongest = "" if seen.factor == 1 else f"strongest of {seen.factor} × {seen.factor}"
    title = f"Pattern: {strongest}" if strongest else "Pattern"
    view = View("pattern", title, seen.pattern[head.index], 0.0, 1.0)
    draw(model, question, head, seen, [view], key=key, says=True, side=side, with_arcs=with_arcs)
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
    side: int = SIDE,
    with_arcs: bool = True,
    makers: list[Maker] | None = None,
) -> None:
    """Draw matrices of a head of a run's model: where the answer stands is outlined, and what is said is named."""
    heads = heads_of(model.sample(question).attentions)
    marks, said = _marks(model, question, head, detail), _says(model, question, detail) if says else None
    draw_head(
        heads, head, detail, views, key=key, marks=marks, says=said, side=side, with_arcs=with_arcs, makers=makers
    )


def draw_head(
    heads: Sequence[Head],
    head: Head,
    detail: Detail | Attention,
    views: list[View],
    *,
    key: str,
    marks: np.ndarray | None = None,
    says: tuple[str, ...] | None = None,
    side: int = SIDE,
    with_arcs: bool = True,
    makers: list[Maker] | None = None,
) -> None:
    """Draw matrices of one of `heads`, or of a long input the window of them that the view names.

    `marks`, bool [query, key], are outlined; `says` are the tokens that are said at each query.
    """
    first = _window(detail, detail.pattern[head.index]) or (0, 0)
    rows, columns = (slice(start, start + WINDOW if _is_long(detail) else None) for start in first)
    whole = None
    if _is_long(detail):
        coarse = -(-max(detail.mask.shape) // FINEST)
        whole = Whole(downsampled(views[0].values, coarse), downsampled(detail.mask, coarse), coarse)
    size = (detail.whole if isinstance(detail, Attention) else None) or detail.mask.shape
    query = session.settings().query
    figure = coloured(
        head_figure,
        Subject(
            head=str(head),
            number=list(heads).index(head),
            queries=detail.queries[rows],
            keys=detail.keys[columns],
            mask=detail.mask[rows, columns],
            size=size,
            first=first,
            factor=_tokens_a_cell(detail),
            marks=None if marks is None else marks[rows, columns],
            says=None if says is None else says[rows],
        ),
        [replace(view, values=view.values[rows, columns]) for view in views],
        whole=whole,
        locked=query - 1 if query is not None and query <= size[0] else None,
        by_row=session.settings().by_row,
        side=side,
        with_arcs=with_arcs,
        link=LINK,
    )

    def clicked() -> None:
        click = st.session_state[key]["click"] or {}
        if place := click.get("window"):
            session.update(window=f"{int(place['row']) + 1},{int(place['column']) + 1}")
        elif (row := click.get("lock")) is not None:
            session.update(query=int(row) + 1 if 0 <= row < size[0] else None)

    alt = f"Head {head.short}, {views[0].name}. {strongest(views[0].values, detail)}"
    plot(figure, key=key, alt=alt, height=None, on_click=clicked, makers=makers)


@claim
def strongest(values: np.ndarray, detail: Detail | Attention) -> str:
    """The greatest weight of a pattern, and where it stands; a query that sees one key alone has no choice."""
    several = detail.mask.sum(axis=1) > 1
    if not several.any():
        return "No query sees more than one key."
    shown = np.where(detail.mask & several[:, None], values, -1.0)
    level = np.argwhere(shown.round(2) == shown.max().round(2))
    row, column = level[0].tolist()
    factor = _tokens_a_cell(detail)
    at = "at {}" if factor == 1 else "from {} on"
    who, whom = (
        f"'{names[place]}' {at.format(place * factor + 1)}"
        for names, place in ((detail.queries, row), (detail.keys, column))
    )
    begins = "Of queries that see several keys, the" if (detail.mask.sum(axis=1) == 1).any() else "The"
    among = f", in {len(level)} cells. In the first of them," if len(level) > 1 else ":"
    return f"{begins} largest weight is {shown.max():.2f}{among} query {who} reads {whom}."


def _tokens_a_cell(detail: Detail | Attention) -> int:
    """How many tokens a side of a cell stands for."""
    return detail.factor if isinstance(detail, Attention) else 1


def _strongest(values: np.ndarray, detail: Detail | Attention) -> tuple[int, int]:
    shown = np.where(detail.mask & (detail.mask.sum(axis=1) > 1)[:, None], values, -1.0)
    row, column = np.unravel_index(int(shown.argmax()), shown.shape)
    return int(row), int(column)


def _is_long(detail: Detail | Attention) -> bool:
    return max(detail.mask.shape) > LONG


def _window(detail: Detail | Attention, pattern: np.ndarray) -> tuple[int, int] | None:
    """Where the window begins, of all that is drawn of a head: around the place that the view names, or around the
    strongest cell of its pattern; None if all fits."""
    shape = detail.mask.shape
    if not _is_long(detail):
        return None
    text = session.settings().window
    try:
        row, column = (int(part) - 1 for part in text.split(",")) if text else (-1, -1)
    except ValueError:
        row = shape[0]
    if text and not (0 <= row < shape[0] and 0 <= column < shape[1]):
        session.notice(f"There is no place “{shortened(text, 30)}” in this input; the window is on the strongest cell.")
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
