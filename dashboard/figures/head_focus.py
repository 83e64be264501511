"""One head, large: its matrices in one figure, and its pattern once more as arcs from each query to the keys it reads.

Coordinates are positions, counted from 1: of a long input the matrices show a window, or a cell is a block of tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import end_text, scaled
from dashboard.figures.kit.lines import frame
from dashboard.figures.kit.notation import lowered
from dashboard.figures.kit.token_axis import MOST_LABELS, breadth, elided, token_axis
from dashboard.figures.patterns import forbidden, outline
from dashboard.theme import LIGHT, Palette, template

SIDE, SMALL = 340, 0.74
"""Pixels of the pattern's longer side, where there is room, and the share of them that the other matrices have."""
LARGER = 1.5, 1.35, 1.2, 1.1, 1, 0.9, 0.8
"""The shares of its side that a pattern without arcs may have, the first for which there is room."""
HEADING, NAME, GAP, EDGE = 26, 20, 18, 6
"""Pixels above a panel for its title and scale, beside it for an axis' name, between two panels, and at the edge."""
STANDOFF = 4
"""Pixels between a label and what it names."""
ARCS, LETTERS = 90, 8
"""Pixels between the two columns of tokens, at least, and letters that are written of each."""
NOTE = 13
"""Pixels of the letters above and below a panel."""
BAR = 36
"""Pixels of a scale from end to end."""
FEW = 0.5
"""The share of the labels for which a matrix of many tokens has room that is written: a click waits for each."""
SMALLEST_FRAME, SMALLEST_ROW = 4, 6
"""Pixels of a cell from which on it is outlined, and of a row from which on it has arcs without having a name."""
FAINT = 0.02
"""Weaker arcs are not drawn: thousands of them would be a grey veil."""
LEVELS = 8
"""Arcs come in so many widths; all of one width are one path."""
HIDDEN = "may not be seen<extra></extra>"
BEND = 0.45
"""How far an arc keeps its height from either end, as a share of its way."""


@dataclass(frozen=True, eq=False)
class View:
    """One matrix of a head: what it is called, its numbers, and their scale."""

    name: str
    """What the sentence under the figure calls it: "contribution"."""
    title: str
    values: np.ndarray
    """Float [query, key]; where nothing is allowed, whatever: the mask decides."""
    low: float
    high: float
    digits: int = 2
    """Digits after the point."""


@dataclass(frozen=True, eq=False)
class Whole:
    """A downsampled picture of the whole pattern, of which the views show a window."""

    pattern: np.ndarray
    """Float [block, block], 0 to 1: the greatest cell of each."""
    mask: np.ndarray
    """Bool [block, block]: whether any of it may be seen."""
    factor: int
    """How many tokens a side of a block stands for."""


@dataclass(frozen=True, eq=False)
class Subject:
    """The head that is drawn, and what the rows and columns of its views mean."""

    head: str
    """Its path: "decoder.1.self_attention.3"."""
    number: int
    """Its number in the grid of all heads."""
    queries: tuple[str, ...]
    """A label for each row that is shown."""
    keys: tuple[str, ...]
    mask: np.ndarray
    """Bool [query, key], True = may be seen."""
    size: tuple[int, int]
    """How many queries and keys there are in all."""
    first: tuple[int, int] = (0, 0)
    """The query and the key at which the views begin, from 0: of a long input they are a window."""
    factor: int = 1
    """How many tokens a row and a column stand for."""
    marks: np.ndarray | None = None
    """Bool [query, key]: cells to outline."""
    says: tuple[str, ...] | None = None
    """What the model says at each query, if that is known."""


def head_figure(
    subject: Subject,
    views: Sequence[View],
    *,
    whole: Whole | None = None,
    locked: int | None = None,
    by_row: bool = False,
    side: int = SIDE,
    with_arcs: bool = True,
    link: str | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """The `views` of one head: the first large, its arcs beside it, and below it the others and the `whole`.

    Its arcs are left out where the page draws them elsewhere.
    `locked` is the query, from 0, that is framed and whose arcs stand out. With `by_row` each row of a scale from 0
    ends at its own greatest value. The pattern is `side` pixels wide where there is room; `layout.meta.panels` says
    where everything stands, in pixels, for several widths (web/plot/places.js), and `layout.meta.head` what can be
    asked of it by pointer and key (web/plot/head.js). Raises ValueError where shapes do not fit.
    """
    _check(subject, views)
    step = side / max(subject.mask.shape)
    row = None
    if locked is not None:
        row = (locked - subject.first[0]) // subject.factor
        locked = subject.first[0] + row * subject.factor
        row = row if 0 <= row < len(subject.queries) else None
    panels = [_matrix(subject, view, number, row, by_row, step, palette) for number, view in enumerate(views, start=1)]
    if whole is not None:
        panels.append(_map(subject, whole, len(panels) + 1, palette))
    arcs = _arcs(subject, views[0].values, len(panels) + 1, step, row, palette) if with_arcs else None
    parts = [*panels, *([] if arcs is None else [arcs])]
    places = _places(panels, arcs, side)
    return go.Figure(
        [trace for part in parts for trace in part.traces],
        {
            "template": template(palette),
            **_placed({name: axis for part in parts for name, axis in part.axes.items()}, places[0]),
            "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
            "showlegend": False,
            "hovermode": "closest",
            "annotations": [note for part in parts for note in part.annotations],
            "shapes": [shape for part in parts for shape in part.shapes],
            "meta": {
                "link": link,
                "tokens": {"x": list(subject.keys), "y": list(subject.queries)},
                "note": _note(subject, whole),
                "panels": places,
                "head": {
                    "name": subject.head,
                    "number": subject.number,
                    "says": subject.says,
                    "locked": locked,
                    "arcs": None if arcs is None else {"axes": list(arcs.axes), "names": arcs.left},
                },
            },
        },
    )


@dataclass(frozen=True)
class _Part:
    """A part of the figure: what Plotly is given for it, and the room that it needs."""

    shape: tuple[int, int]
    """Rows and columns."""
    axes: dict[str, dict[str, Any]]
    """The horizontal one first; of a matrix its colour axis as well."""
    traces: list[dict[str, Any]]
    annotations: list[dict[str, Any]]
    shapes: list[dict[str, Any]] = field(default_factory=list)
    left: int = 0
    """Pixels of its labels and names beside it; of the arcs on either side."""
    below: int = 0
    bar: float = 0.0
    """How many pixels left of its right edge its scale ends."""


def _matrix(
    subject: Subject, view: View, number: int, locked: int | None, by_row: bool, step: float, palette: Palette
) -> _Part:
    """A matrix on the axes of this number; the first names what its rows and columns are."""
    n, first = ("", True) if number == 1 else (str(number), False)
    step *= 1 if first else SMALL
    own = by_row and view.low == 0
    z = np.where(subject.mask, view.values, np.nan).astype(np.float32)
    most = "at most " if subject.factor > 1 else ""
    meta: dict[str, Any] = {"view": view.name, "digits": view.digits, **_cells(subject)}
    cells: dict[str, Any] = {
        "type": "heatmap",
        "name": view.name,
        "z": z,
        "coloraxis": f"coloraxis{n}",
        "hoverongaps": False,
        "hovertemplate": f"{view.name}: {most}%{{{'customdata' if own else 'z'}:.{view.digits}f}}<extra></extra>",
        "meta": meta,
    }
    if own:
        greatest = np.where(subject.mask, view.values, 0).max(axis=1, keepdims=True)
        cells |= {"z": z / np.where(greatest > 0, greatest, 1).astype(np.float32), "customdata": z}
        meta["numbers"] = "customdata"
    grey = forbidden(subject.mask, {"hovertemplate": HIDDEN}, palette)
    if grey:
        grey[0] = {**grey[0], "meta": {"forbidden": True, **_cells(subject)}}
    marks = subject.marks if subject.marks is not None and step >= SMALLEST_FRAME else None
    frames = [outline(marks, palette.chance, 2, "expected")] if marks is not None and marks.any() else []
    rows, columns = subject.mask.shape
    sides = [step * count * (FEW if count > MOST_LABELS else 1) for count in (columns, rows)]
    across = token_axis("key: looked at" if first else "", subject.keys, upright=False, length=SMALL * sides[0])
    down = token_axis("query: who looks" if first else "", subject.queries, length=sides[1])
    low, high = (0.0, 1.0) if own else (view.low, view.high)
    ends = ("0", "row’s most") if own else (end_text(view.low), end_text(view.high))
    room = step * columns - sum(breadth(end, 12) for end in ends) - BAR - GAP
    left, right = _range(subject, 1)
    top = _range(subject, 0)[0] + (locked or 0) * subject.factor
    return _Part(
        shape=(rows, columns),
        axes={
            f"xaxis{n}": _axis(across, subject, 1, first) | {"anchor": f"y{n}"},
            f"yaxis{n}": _axis(down, subject, 0, first) | {"anchor": f"x{n}"},
            f"coloraxis{n}": _scale(low, high, palette),
        },
        traces=[_at(trace, subject, n) for trace in [cells, *grey, *frames]],
        annotations=[_title(view.title, n, room), *_ends(ends, n, palette)],
        shapes=[] if locked is None else [_around((left, top, right, top + subject.factor), n, palette)],
        left=_beside(down) + (NAME if first else 0),
        below=_under(across) + (NAME if first else 0),
        bar=breadth(ends[1], 12) + 4,
    )


def _map(subject: Subject, whole: Whole, number: int, palette: Palette) -> _Part:
    """The whole of a long pattern in blocks, and a frame around the window that the views show."""
    z = np.where(whole.mask, whole.pattern, np.nan).astype(np.float32)
    blocks = {"x0": 1, "dx": whole.factor, "y0": 1, "dy": whole.factor, "xaxis": f"x{number}", "yaxis": f"y{number}"}
    cells = {
        "type": "heatmap",
        "name": "whole",
        "z": z,
        "coloraxis": "coloraxis",  # the pattern's own
        "hoverongaps": False,
        "hovertemplate": "at most %{z:.2f}<extra></extra>",
        "meta": {"view": "whole", "digits": 2, "cells": {"whole": subject.size, "factor": whole.factor}},
    }
    grey = forbidden(whole.mask, {"hovertemplate": HIDDEN}, palette)[:1]
    half = whole.factor / 2
    rows, columns = whole.mask.shape
    plain = {"showgrid": False, "showticklabels": False, "ticks": "", "fixedrange": True, "automargin": False}
    ends = [[1 - half, 1 - half + count * whole.factor] for count in (rows, columns)]
    (top, left), (high, wide) = subject.first, subject.mask.shape
    window = np.array([left, top, left + wide, top + high]) + 1 - half
    title = f"All {subject.size[0]} × {subject.size[1]}: click to move the frame"
    return _Part(
        shape=whole.mask.shape,
        axes={
            f"xaxis{number}": {**plain, "range": ends[1], "anchor": f"y{number}", "constrain": "domain"},
            f"yaxis{number}": {**plain, "range": ends[0][::-1], "anchor": f"x{number}", "constrain": "domain"},
        },
        traces=[trace | blocks for trace in [cells, *grey]],
        annotations=[_title(title, str(number))],
        shapes=[_around(window.tolist(), str(number), palette)],
    )


def _arcs(
    subject: Subject, pattern: np.ndarray, number: int, step: float, locked: int | None, palette: Palette
) -> _Part:
    """The pattern as arcs, from the queries on the left to the keys on the right, heavier where more is read.

    Rows that are too close for their arcs to be told apart have them only where they have a name.
    """
    rows, columns = subject.mask.shape
    down, across = (
        token_axis("", [elided(label, LETTERS) for label in labels], length=step * rows)
        for labels in (subject.queries, subject.keys)
    )
    drawn: Sequence[int] = range(rows) if step >= SMALLEST_ROW else down["tickvals"]
    weights = np.where(subject.mask, pattern, 0.0)
    chosen = np.isin(np.arange(rows), drawn)[:, None] & (weights >= FAINT)
    x, y = f"x{number}", f"y{number}"
    shapes = []
    for level in range(LEVELS):
        low, high = level / LEVELS, (level + 1) / LEVELS
        those = chosen & (weights > low) & ((weights <= high) | (level == LEVELS - 1))
        for faint, cells in _told_apart(those, locked):
            if cells.any():
                shapes.append(_bundle(cells, (low + high) / 2, faint, subject, x, y, palette))
    count = f"{len(drawn)} of {rows} rows" if len(drawn) < rows else "Query"
    fixed = {"fixedrange": True, "automargin": False, "anchor": x}
    ranges = [_range(subject, side) for side in (0, 1)]
    empty = {"type": "scatter", "name": "arcs", "x": [None], "y": [None], "xaxis": x, "hoverinfo": "skip"}
    return _Part(
        shape=(rows, columns),
        axes={
            f"xaxis{number}": {"range": [0, 1], "visible": False, "fixedrange": True, "anchor": y},
            f"yaxis{number}": {**_ticks(down, subject, 0), **fixed, "range": ranges[0][::-1]},
            f"yaxis{number + 1}": {
                **_ticks(across, subject, 1),
                **fixed,
                "range": ranges[1][::-1],
                "overlaying": y,
                "side": "right",
            },
        },
        traces=[empty | {"yaxis": y}, empty | {"yaxis": f"y{number + 1}"}],
        annotations=[_heading(count, str(number), "left"), _heading("Key", str(number), "right")],
        shapes=shapes,
        left=max(_beside(down), _beside(across), math.ceil(breadth(count, NOTE) / 2)),
    )


def _told_apart(cells: np.ndarray, locked: int | None) -> list[tuple[bool, np.ndarray]]:
    """The cells, and whether they stand back: where a query is locked, all but its own."""
    if locked is None:
        return [(False, cells)]
    own = (np.arange(len(cells)) == locked)[:, None]
    return [(True, cells & ~own), (False, cells & own)]


def _bundle(
    cells: np.ndarray, weight: float, faint: bool, subject: Subject, x: str, y: str, palette: Palette
) -> dict[str, Any]:
    """The arcs of these cells, all of one weight: a path of cubic Béziers, whose ends run level."""
    rows, columns = cells.shape
    start = [_range(subject, side)[0] for side in (0, 1)]
    found = np.argwhere(cells)
    # Keys stand on an axis of their own; a path has one: their places on that of the queries.
    ends = start[0] + np.stack([found[:, 0] + 0.5, (found[:, 1] + 0.5) * rows / columns], axis=1) * subject.factor
    path = "".join(f"M0,{a:.6g}C{BEND},{a:.6g} {1 - BEND},{b:.6g} 1,{b:.6g}" for a, b in ends.tolist())
    return {
        "type": "path",
        "path": path,
        "xref": x,
        "yref": y,
        "name": "arcs",
        "opacity": (0.08 + 0.92 * weight) * (0.1 if faint else 1),
        "line": {"width": 0.5 + 2.5 * weight, "color": palette.accent},
    }


def _around(box: Sequence[float], n: str, palette: Palette) -> dict[str, Any]:
    """A frame from the first corner of a box to the other: (left, top, right, bottom), on the axes of a panel."""
    left, top, right, bottom = box
    line = {"width": 2, "color": palette.accent}
    return frame(left, top, right, bottom, line) | {"xref": f"x{n}", "yref": f"y{n}"}


# Places. They are given in pixels: what share of a figure they are depends on how wide the browser makes it.


def _places(panels: list[_Part], arcs: _Part | None, side: int) -> list[dict[str, Any]]:
    """Where everything stands for several widths, the best first: what fits first is taken, or else the last.

    Each is {least, height, axes, bars, pattern}: the width it needs, its height, from where to where its axes go, where
    scales end on the right, and at what height, and where the first panel ends with its labels, on the right and below.
    What counts from the right edge is negative, or zero.
    """
    sides = [round(share * side) for share in ((1, 0.9, 0.8) if arcs else LARGER)]
    return [_arranged(panels, arcs, each, beside) for beside in (True, False)[: 1 + bool(arcs)] for each in sides]


def _arranged(panels: list[_Part], arcs: _Part | None, side: int, beside: bool) -> dict[str, Any]:
    """The arcs beside the pattern or below it, the other panels below, two in a line or each in its own."""
    axes: dict[str, list[float]] = {}
    bars: dict[str, list[float]] = {}

    def put(panel: _Part, left: float, top: float, longest: float) -> tuple[float, float]:
        """Place a matrix with its labels; returns where it ends on the right, and below."""
        rows, columns = panel.shape
        step = longest / max(rows, columns)
        x0, y0 = left + panel.left, top + HEADING
        x1, y1 = x0 + step * columns, y0 + step * rows
        across, down, *colours = panel.axes
        axes.update({across: [x0, x1], down: [y0, y1]})
        bars.update({name: [x1 - panel.bar, top + HEADING / 2] for name in colours})
        return x1, y1 + panel.below

    pattern, *others = panels
    right, bottom = put(pattern, 0, 0, side)
    ends = [right + GAP / 2, bottom]
    least = right + EDGE
    if arcs is not None:
        across, down, _ = arcs.axes
        if beside:
            axes |= {across: [right + GAP + arcs.left, -arcs.left], down: axes[list(pattern.axes)[1]]}
            least = right + GAP + 2 * arcs.left + ARCS
        else:
            top = bottom + EDGE
            axes |= {across: [arcs.left, -arcs.left], down: [top, top + side]}
            bottom = top + side + HEADING
    in_a_line = 2 if beside else 1
    for start in range(0, len(others), in_a_line):
        left, top = 0.0, bottom + EDGE
        for panel in others[start : start + in_a_line]:
            x1, y1 = put(panel, left, top, SMALL * side if beside else side)
            left, bottom = x1 + GAP, max(bottom, y1)
            least = max(least, x1 + EDGE)
    return {"least": round(least), "height": round(bottom + EDGE), "axes": axes, "bars": bars, "pattern": ends}


def _placed(axes: dict[str, dict[str, Any]], place: dict[str, Any]) -> dict[str, Any]:
    """The layout of a figure that is just as wide as a place needs."""
    width, height = place["least"], place["height"]
    layout: dict[str, Any] = {"width": width, "height": height, **axes}
    for name, (start, end) in place["axes"].items():
        ends = [start / width, end / width + (end <= 0)] if name[0] == "x" else [1 - end / height, 1 - start / height]
        layout[name] = {**axes[name], "domain": ends}
    for name, (x, y) in place["bars"].items():
        layout[name] = {**axes[name], "colorbar": {**axes[name]["colorbar"], "x": x / width, "y": 1 - y / height}}
    return layout


# Axes, titles and scales.


def _range(subject: Subject, side: int) -> tuple[float, float]:
    """Where the rows (0) or columns (1) begin and end."""
    start = subject.first[side] + 1 - subject.factor / 2
    return start, start + subject.mask.shape[side] * subject.factor


def _at(trace: dict[str, Any], subject: Subject, n: str) -> dict[str, Any]:
    """A trace whose cells count from 0, on the axes of its panel and at the positions of its tokens."""
    starts = [first + 1 for first in subject.first]
    if trace["type"] == "heatmap":
        moved = {"x0": starts[1], "y0": starts[0], "dx": subject.factor, "dy": subject.factor}
    else:
        moved = {"x": trace["x"] * subject.factor + starts[1], "y": trace["y"] * subject.factor + starts[0]}
    return trace | moved | {"xaxis": f"x{n}", "yaxis": f"y{n}"}


def _ticks(axis: dict[str, Any], subject: Subject, side: int) -> dict[str, Any]:
    """An axis of tokens whose places count from 0, at their positions."""
    places = [place * subject.factor + subject.first[side] + 1 for place in axis["tickvals"]]
    # Plotly measures every label to find out whether one leaves the figure: half of the time that it takes to draw it.
    return axis | {"tickvals": places, "ticklabelstandoff": STANDOFF, "ticklabeloverflow": "allow"}


def _axis(axis: dict[str, Any], subject: Subject, side: int, first: bool) -> dict[str, Any]:
    """The axis of a matrix. Cells of the first are squares; the others follow its zoom."""
    ends = _range(subject, side)
    made = {**_ticks(axis, subject, side), "range": ends if side else ends[::-1], "automargin": False}
    if not first:
        return made | {"matches": "yx"[side]}
    return made | {"constrain": "domain"} | ({} if side else {"scaleanchor": "x", "constraintoward": "top"})


def _beside(axis: dict[str, Any]) -> int:
    """Pixels that the labels of a vertical axis take beside it."""
    size = axis["tickfont"]["size"]
    return round(max(breadth(label, size) for label in axis["ticktext"])) + 4 + STANDOFF


def _under(axis: dict[str, Any]) -> int:
    """Pixels that the labels of a horizontal axis take below it: on end, in two lines, or in one."""
    if axis["tickangle"]:
        return _beside(axis)
    lines = 2 if any("<br>" in label for label in axis["ticktext"]) else 1
    return round(1.3 * lines * axis["tickfont"]["size"]) + 2 + STANDOFF


def _title(text: str, n: str, room: float = math.inf) -> dict[str, Any]:
    """The name of a panel above its left corner: what it adds after a colon, and its middle, where there is room."""
    shown = text if breadth(text, NOTE) <= room else text.split(": ")[0]
    # `breadth` is rather too large, so the middle goes only where the name is sure to reach the scale.
    long = (most for most in range(len(shown), 8, -1) if 0.8 * breadth(elided(shown, most), NOTE) <= room + GAP)
    shown = elided(shown, next(long, 8))
    return {**_note_above(n), "text": f"<b>{lowered(shown)}</b>", "x": 0, "xanchor": "left"}


def _ends(ends: tuple[str, str], n: str, palette: Palette) -> list[dict[str, Any]]:
    """The numbers at the ends of a scale, above the right corner of its panel."""
    look = {**_note_above(n), "x": 1, "xanchor": "right", "font": {"size": 12, "color": palette.muted}}
    low, high = ends
    return [look | {"text": high}, look | {"text": low, "xshift": -(breadth(high, 12) + BAR + 8)}]


def _heading(text: str, n: str, side: str) -> dict[str, Any]:
    """The name of a column of tokens, below it."""
    ends = {"x": 0, "xanchor": "center"} if side == "left" else {"x": 1, "xanchor": "center"}
    return {**_note_above(n), "text": f"<b>{text}</b>", **ends, "y": 0, "yshift": -HEADING / 2}


def _note_above(n: str) -> dict[str, Any]:
    place = {"xref": f"x{n} domain", "yref": f"y{n} domain", "y": 1, "yanchor": "middle", "yshift": HEADING / 2}
    return {**place, "showarrow": False, "font": {"size": NOTE}}


def _scale(low: float, high: float, palette: Palette) -> dict[str, Any]:
    """A colour axis and its slim bar, which ends where the place of its panel says."""
    scale = scaled(low, high, palette.signed if low < 0 else palette.scale)
    bar: Any = scale["colorbar"]
    bar = bar | {"len": BAR, "xanchor": "right", "yanchor": "middle", "ypad": 0}
    return {"cmin": low, "cmax": high, "colorscale": scale["colorscale"], "colorbar": bar}


def _cells(subject: Subject) -> dict[str, Any]:
    """Which cells of the whole pattern a matrix shows: what a heatmap is taken to show otherwise need not be said."""
    if subject.factor == 1 and subject.size == subject.mask.shape:
        return {}
    return {"cells": {"first": subject.first, "whole": subject.size, "factor": subject.factor}}


def _note(subject: Subject, whole: Whole | None) -> str:
    """What must be known of the numbers that are saved."""
    if whole is None:
        return ""
    rows, columns = (
        f"{name} {first + 1} to {first + shown} of {size}"
        for name, first, shown, size in zip(
            ("queries", "keys"), subject.first, subject.mask.shape, subject.size, strict=True
        )
    )
    return f"Exact for a window: {rows}, {columns}. The whole is downsampled {whole.factor}×."


def _check(subject: Subject, views: Sequence[View]) -> None:
    if not views:
        raise ValueError("A head needs at least one view.")
    shape = subject.mask.shape
    for view in views:
        if view.values.shape != shape:
            raise ValueError(f"The view {view.name} is {list(view.values.shape)}, the mask {list(shape)}.")
        if not view.low < view.high:
            raise ValueError(f"The scale of {view.name} must rise, not go from {view.low} to {view.high}.")
    if subject.marks is not None and subject.marks.shape != shape:
        raise ValueError(f"The marks are {list(subject.marks.shape)}, the mask {list(shape)}.")
    if (len(subject.queries), len(subject.keys)) != shape:
        raise ValueError(
            f"{len(subject.queries)} query labels and {len(subject.keys)} key labels for a pattern of "
            f"{shape[0]} × {shape[1]}."
        )
