"""The flow: how information can travel from token to token, layer by layer, to one output."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import product

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.token_axis import breadth, named, safe
from dashboard.theme import LIGHT, Palette, template

MOST_LINES = 24
"""More tokens than this in a column, and its lines are merged into bands."""
LETTERS, LINE = 14, 17
"""Pixels of a name's letters, and from one name to the next."""
ABOVE, BELOW = 30, 4
BESIDE, AWAY = 76, 14
"""Pixels of the margins, at least; and from a node to its name."""
MOST_STRONG = 30
"""More strong lines than this are drawn thinner."""
BEND = np.linspace(0, 1, 17)
NODE, SMALL_NODE = 15, 6
"""Pixels across a node, and where there are many."""


@dataclass(frozen=True)
class Nodes:
    """A column of tokens. Both arrays bool [place]."""

    title: str
    labels: Sequence[str]
    leads: np.ndarray
    """Does a path go on from here to the output?"""
    carries: np.ndarray
    """Can what the output needs have arrived here?"""


@dataclass(frozen=True)
class Steps:
    """The steps from one column to another, numbered from 0. Both arrays bool [to, from]."""

    start: int
    end: int
    attention: np.ndarray
    straight: np.ndarray


def is_merged(columns: Sequence[Nodes]) -> bool:
    """Are there too many tokens for a line each?"""
    return max(len(column.labels) for column in columns) > MOST_LINES


def path_flow(
    columns: Sequence[Nodes],
    steps: Sequence[Steps],
    target: int,
    *,
    outputs: Sequence[str],
    height: int,
    palette: Palette = LIGHT,
) -> go.Figure:
    """All paths to output `target` of the last column, counted from 0; what it needs travels along the strong ones.

    Columns stand in the data's order from left to right, the first token on top. Filled: on a path to the output.
    Strong: what is needed can be there, and go on. `outputs` names what is to be said at each place of the last. Only
    so many names are written as do not touch in `height` pixels.
    """
    if is_merged(columns):
        ways = _bands(columns, steps, palette)
    else:
        kinds = product((False, True), (False, True))
        ways = [line for strong, straight in kinds for line in _lines(columns, steps, palette, strong, straight)]
    last = len(columns) - 1
    nodes = [
        _nodes(number, column, target if number == last else None, outputs, palette)
        for number, column in enumerate(columns)
    ]
    rows = max(len(column.labels) for column in columns)
    apart = math.ceil(LINE * (rows + 0.4) / (height - ABOVE - BELOW))
    names = list(_names(columns, outputs, target, apart, palette))
    layout = {
        "template": template(palette),
        "annotations": names,
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": False,
        "margin": {"l": _room(names, 0), "r": _room(names, last), "t": ABOVE, "b": BELOW},
        "xaxis": {"visible": False, "range": [-0.04, len(columns) - 0.96], "fixedrange": True},
        "yaxis": {"visible": False, "range": [rows - 0.3, -0.7], "fixedrange": True},
    }
    return go.Figure([*ways, *nodes], layout)


def _lines(
    columns: Sequence[Nodes], steps: Sequence[Steps], palette: Palette, strong: bool, straight: bool
) -> list[dict[str, object]]:
    """All steps of a kind as one trace, each a soft curve; no trace where there are none."""
    ease = BEND * BEND * (3 - 2 * BEND)
    xs: list[np.ndarray] = []
    ys: list[np.ndarray] = []
    for step in steps:
        chosen = (step.straight if straight else step.attention) & (columns[step.start].carries[None, :] == strong)
        for to, place in np.argwhere(chosen):
            xs += [step.start + (step.end - step.start) * BEND, np.array([np.nan])]
            ys += [place + (to - place) * ease, np.array([np.nan])]
    if not xs:
        return []
    crowded = len(xs) > 2 * MOST_STRONG
    width = (2.0 if straight or crowded else 3.5) if strong else (0.7 if straight else 1.0)
    lines = {
        "type": "scatter",
        "x": np.concatenate(xs).astype(np.float32),
        "y": np.concatenate(ys).astype(np.float32),
        "mode": "lines",
        "line": {"color": palette.right if strong else palette.before, "width": width},
        "opacity": 1.0 if strong else 0.55,
        "hoverinfo": "skip",
        "name": f"{'needed' if strong else 'other'} {'straight' if straight else 'attention'}",
    }
    return [lines]


def _bands(columns: Sequence[Nodes], steps: Sequence[Steps], palette: Palette) -> list[dict[str, object]]:
    """The steps between two columns as one band from the first to the last place of either."""
    bands = []
    for strong, step in product((False, True), steps):
        chosen = step.attention | step.straight
        if strong:
            chosen = chosen & columns[step.start].carries[None, :]
        if not chosen.any():
            continue
        to, place = np.flatnonzero(chosen.any(axis=1)), np.flatnonzero(chosen.any(axis=0))
        band = {
            "type": "scatter",
            "x": [step.start, step.end, step.end, step.start],
            "y": [place[0] - 0.4, to[0] - 0.4, to[-1] + 0.4, place[-1] + 0.4],
            "mode": "none",
            "fill": "toself",
            "fillcolor": palette.right if strong else palette.before,
            "opacity": 0.45 if strong else 0.2,
            "hoverinfo": "skip",
            "name": "needed band" if strong else "other band",
        }
        bands.append(band)
    return bands


def _nodes(
    number: int, column: Nodes, target: int | None, outputs: Sequence[str], palette: Palette
) -> dict[str, object]:
    """One column: what carries the needed token is green and filled, what else leads to the output grey."""
    rows = range(len(column.labels))
    kinds = [int(leads) + int(leads and carries) for leads, carries in zip(column.leads, column.carries, strict=True)]
    small = len(rows) > MOST_LINES
    fill = [(palette.background, palette.before, palette.right)[kind] for kind in kinds]
    rim = [(palette.grid, palette.muted, palette.right)[kind] for kind in kinds]
    says = (
        "no path leads from here to the output",
        "a path to the output, without what it needs",
        "what the output needs can be here",
    )
    words = [says[kind] for kind in kinds]
    return {
        "type": "scatter",
        "x": np.full(len(rows), number),
        "y": list(rows),
        "mode": "markers",
        "marker": {
            "size": [(1.5 if row == target else 1) * (SMALL_NODE if small else NODE) for row in rows],
            "symbol": ["square" if row == target else "circle" for row in rows],
            "color": fill,
            "line": {"color": rim, "width": 1.5},
            "opacity": 1,
        },
        "customdata": list(rows),
        "hovertext": [
            f"{safe(column.title)}, position {row + 1} ({safe(column.labels[row])}): {words[row]}"
            + (f"<br>click: which tokens reach output {safe(outputs[row])}?" if target is not None else "")
            for row in rows
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "cliponaxis": False,
        "meta": "output" if target is not None else "token",
        "name": column.title,
    }


def _names(
    columns: Sequence[Nodes], outputs: Sequence[str], target: int, apart: int, palette: Palette
) -> Iterator[dict[str, object]]:
    """Tokens beside the columns in which they are read, outputs beside the last, and the layers above."""
    last = len(columns) - 1
    for number, column in enumerate(columns):
        yield {**_name((number, 0), column.title, 0, palette.muted), "yshift": AWAY}
        ground = palette.background if number else None  # lines may run behind it
        if number == 0 or column.labels is not columns[number - 1].labels:
            needed = _needed(column, first=number == 0)
            for row in _spaced(column.labels, needed, apart):
                colour = palette.text if row not in needed else palette.right if column.leads[row] else palette.wrong
                text, bold = column.labels[row], row in needed
                yield _name((number, row), text, -AWAY, colour, bold=bold, ground=None if bold else ground)
        if number == last:
            for row in _spaced(outputs, [target], apart):
                yield _name((number, row), outputs[row], AWAY, palette.text, bold=row == target)


def _spaced(labels: Sequence[str], marked: Sequence[int], apart: int) -> list[int]:
    """The rows that are named, none nearer than `apart` to another: of the marked ones the first, the last and those
    with letters before all others, then the ends of the column, then the others."""
    lettered = [row for row in marked if any(letter.isalnum() for letter in labels[row])]
    found: list[int] = []
    for row in (*marked[:1], *marked[-1:], *lettered, *marked, 0, len(labels) - 1, *named(labels, apart)):
        if all(abs(row - other) >= apart for other in found):
            found.append(row)
    return sorted(found)


def _room(names: Sequence[dict[str, object]], number: int) -> int:
    """Pixels that the names beside a column take."""
    beside = [str(name["text"]) for name in names if name["x"] == number and name["xanchor"] != "center"]
    plain = [unescape(text.removeprefix("<b>").removesuffix("</b>")) for text in beside]
    return max([BESIDE, *(AWAY + 4 + round(breadth(text, LETTERS)) for text in plain)])


def _needed(column: Nodes, *, first: bool) -> list[int]:
    """Which names to mark: of what is needed all that has a way, or else, in the `first` column, one that has none."""
    on_a_way = np.flatnonzero(column.carries & column.leads)
    return on_a_way.tolist() if len(on_a_way) or not first else np.flatnonzero(column.carries)[:1].tolist()


def _name(
    place: tuple[float, float],
    text: str,
    shift: int,
    colour: str,
    *,
    bold: bool = False,
    ground: str | None = None,
) -> dict[str, object]:
    """Words at a place, `shift` pixels to its right; above it without a shift."""
    return {
        "x": place[0],
        "y": place[1],
        "xanchor": "left" if shift > 0 else "right" if shift < 0 else "center",
        "yanchor": "middle" if shift else "bottom",
        "xshift": shift,
        "text": f"<b>{safe(text)}</b>" if bold else safe(text),
        "showarrow": False,
        "font": {"size": LETTERS, "color": colour},
        "bgcolor": ground,
    }
