"""A plan of boxes and arrows, with the vector that leaves each box: the input at the bottom, the output on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.notation import lowered
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, colour_scale, rgb, template

ROW = 54
"""Pixels from one row of boxes to the next."""
BOTTOM, TOP = 0.08, 0.78
"""Where a box begins and ends in its row."""
STRIP = (0.14, 0.36)
"""Where its vector stands."""
ROAD = 0.035
"""How far left of its boxes the residual stream runs, as a share of the width."""
MARGIN, BETWEEN = 0.02, 0.06
"""Left and right of all lanes, and between two, as shares of the width."""
SIDE = 0.24
"""The share of a lane in which a single box stands."""
MOST_TINT = 0.4
"""The opacity of the box that moved most."""
MOST_NAMED = 20
"""More boxes than this side by side, and their names would touch."""


@dataclass(frozen=True)
class Stage:
    """A box."""

    name: str
    title: str
    count: str
    """How many parameters it has, in words; empty where it has none."""
    sentence: str
    """What it does, shown beside the pointer."""
    row: int
    lane: int
    slot: tuple[int, int]
    values: np.ndarray | None
    """What leaves it for the chosen token, float [number]; none for tokens."""
    signed: bool
    """Can the numbers be negative? Else they are shares, from 0 to 1."""
    text: str = ""
    """What stands in the place of a vector: the tokens themselves."""
    moved: float = 0.0
    """How far training moved it, as a share of the box that moved most: it is tinted by so much."""


@dataclass(frozen=True)
class Link:
    """An arrow, by the places of its boxes in the list, with the shape of what passes along it in words."""

    start: int
    end: int
    shape: str
    road: bool


def height_of(stages: Sequence[Stage]) -> int:
    """Pixels from top to bottom."""
    return ROW * (1 + max(stage.row for stage in stages)) + 8


def machine_figure(
    stages: Sequence[Stage], links: Sequence[Link], chosen: str, *, palette: Palette = LIGHT
) -> go.Figure:
    """Every box a bar that can be clicked, its vector a strip of cells in it; the residual stream is a broad line.

    The cells of a strip are coloured by its own largest number. The chosen box has a thick edge.
    """
    spans = _spans(stages)
    traces: list[dict[str, Any]] = [_boxes(stages, spans, chosen, palette)]
    traces += [
        _strip(stage, span, palette) for stage, span in zip(stages, spans, strict=True) if stage.values is not None
    ]
    traces += [_roads(links, stages, spans, palette), *_arrows(links, stages, spans, palette)]
    traces += [_titles(stages, spans, palette), _counts(stages, spans, palette), _shapes(links, stages, spans, palette)]
    if any(stage.text for stage in stages):
        traces.append(_written(stages, spans, palette))
    rows = 1 + max(stage.row for stage in stages)
    hidden = {"visible": False, "fixedrange": True}
    layout = {
        "template": template(palette),
        "xaxis": {**hidden, "range": [0, 1]},
        "yaxis": {**hidden, "range": [-0.05, rows + 0.02]},
        "margin": {"l": 0, "r": 0, "t": 2, "b": 2},
        "showlegend": False,
        "barmode": "overlay",
        "hovermode": "closest",
        "dragmode": False,
        "shapes": _tints(stages, spans, palette),
    }
    return go.Figure(traces, layout)


Span = tuple[float, float]


def _spans(stages: Sequence[Stage]) -> list[Span]:
    """From where to where each box reaches, as shares of the width."""
    lanes = 1 + max(stage.lane for stage in stages)
    free = 1 - 2 * MARGIN - BETWEEN * (lanes - 1)
    alone = lanes > 1 and sum(stage.lane == 0 for stage in stages) == 1
    widths = [free * SIDE, free * (1 - SIDE)] if alone else [free / lanes] * lanes
    spans = []
    for stage in stages:
        left = MARGIN + sum(widths[: stage.lane]) + stage.lane * BETWEEN + ROAD
        at, of = stage.slot
        room = (widths[stage.lane] - ROAD) / of
        gap = min(0.012, room * 0.12) if of > 1 else 0.0
        spans.append((left + at * room + gap / 2, left + (at + 1) * room - gap / 2))
    return spans


def _boxes(stages: Sequence[Stage], spans: Sequence[Span], chosen: str, palette: Palette) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "base": [left for left, _ in spans],
        "x": [right - left for left, right in spans],
        "y": [stage.row + (BOTTOM + TOP) / 2 for stage in stages],
        "width": [TOP - BOTTOM] * len(stages),
        "customdata": [stage.name for stage in stages],
        "hovertext": [lowered(safe(stage.sentence)) for stage in stages],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {
            "color": "rgba(0,0,0,0)",
            "cornerradius": 6,
            "line": {
                "color": [palette.accent if stage.name == chosen else palette.muted for stage in stages],
                "width": [3.5 if stage.name == chosen else 1 for stage in stages],
            },
        },
        "name": "boxes",
    }


def _tints(stages: Sequence[Stage], spans: Sequence[Span], palette: Palette) -> list[dict[str, Any]]:
    """The ground of each box that moved, under its strip."""
    r, g, b = rgb(palette.accent)
    return [
        {
            "type": "rect",
            "layer": "below",
            "x0": left,
            "x1": right,
            "y0": stage.row + BOTTOM,
            "y1": stage.row + TOP,
            "line": {"width": 0},
            "fillcolor": f"rgba({r},{g},{b},{MOST_TINT * stage.moved:.3f})",
        }
        for stage, (left, right) in zip(stages, spans, strict=True)
        if stage.moved
    ]


def _strip(stage: Stage, span: Span, palette: Palette) -> dict[str, Any]:
    values = np.asarray(stage.values, dtype=np.float64)
    largest = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    left, right = span
    pad = min(0.008, (right - left) * 0.08)
    cell = (right - left - 2 * pad) / len(values)
    middle, high = sum(STRIP) / 2, STRIP[1] - STRIP[0]
    low = -largest if stage.signed else 0.0
    return {
        "type": "heatmap",
        "z": values.astype(np.float32)[None],
        "x0": left + pad + cell / 2,
        "dx": cell,
        "y0": stage.row + middle,
        "dy": high,
        "zmin": low,
        "zmax": largest if stage.signed else 1.0,
        "colorscale": colour_scale(palette.signed if stage.signed else palette.scale),
        "showscale": False,
        "text": [[f"{number} of {len(values)}: {value:.3g}" for number, value in enumerate(values, 1)]],
        "hovertemplate": f"{safe(stage.title)}, number %{{text}}<extra></extra>",
        "meta": stage.name,
        "name": stage.title,
    }


def _roads(links: Sequence[Link], stages: Sequence[Stage], spans: Sequence[Span], palette: Palette) -> dict[str, Any]:
    """The residual stream: left of the boxes, from the middle of one to the middle of the next."""
    x: list[float | None] = []
    y: list[float | None] = []
    for link in links:
        if link.road:
            (begin, _), (end, _) = spans[link.start], spans[link.end]
            outside = begin - ROAD / 2
            low, high = (stages[each].row + (BOTTOM + TOP) / 2 for each in (link.start, link.end))
            x += [begin, outside, outside, end, None]
            y += [low, low, high, high, None]
    return _line(x, y, palette.accent, 7) | {"name": "residual stream"}


def _arrows(
    links: Sequence[Link], stages: Sequence[Stage], spans: Sequence[Span], palette: Palette
) -> list[dict[str, Any]]:
    x: list[float | None] = []
    y: list[float | None] = []
    heads: list[tuple[float, float, str]] = []
    starts: dict[int, int] = {}
    """The boxes from which an arrow leads into the other lane: each has a way of its own."""
    for link in links:
        if link.road or (stages[link.start].lane != stages[link.end].lane and stages[link.end].slot[0]):
            continue  # of boxes side by side the first one stands for all
        one, other = stages[link.start], stages[link.end]
        begin, end = spans[link.start], spans[link.end]
        if one.lane != other.lane:
            starts.setdefault(link.start, len(starts))
            across = end[0] - ROAD - BETWEEN / 2 + 0.014 - 0.012 * starts[link.start]
            low, high = (each.row + (BOTTOM + TOP) / 2 - 0.1 for each in (one, other))
            x += [begin[1], across, across, end[0] - 0.006, None]
            y += [low, low, high, high, None]
            heads.append((end[0] - 0.008, high, "triangle-right"))
        elif other.row > one.row + 1:  # past the boxes between them, on their right
            outside = max(begin[1], end[1]) + 0.012
            low, high = (each.row + (BOTTOM + TOP) / 2 for each in (one, other))
            x += [begin[1], outside, outside, end[1] + 0.004, None]
            y += [low, low, high, high, None]
            heads.append((end[1] + 0.006, high, "triangle-left"))
        else:
            start, stop = sum(begin) / 2, sum(end) / 2
            low, high = one.row + TOP, other.row + BOTTOM
            x += [start, stop, None]
            y += [low, high - 0.06, None]
            heads.append((stop, high - 0.06, "triangle-up"))
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": [head[0] for head in heads],
        "y": [head[1] for head in heads],
        "marker": {"symbol": [head[2] for head in heads], "size": 8, "color": palette.muted},
        "hoverinfo": "skip",
        "name": "arrow heads",
    }
    return [_line(x, y, palette.muted, 1.5) | {"name": "arrows"}, points]


def _line(x: list[float | None], y: list[float | None], colour: str, width: float) -> dict[str, Any]:
    line = {"color": colour, "width": width}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line, "hoverinfo": "skip"}


def _titles(stages: Sequence[Stage], spans: Sequence[Span], palette: Palette) -> dict[str, Any]:
    single = [stage.slot[1] == 1 for stage in stages]
    return _texts(
        [left + 0.008 if alone else (left + right) / 2 for (left, right), alone in zip(spans, single, strict=True)],
        [stage.row + 0.57 for stage in stages],
        [stage.title if stage.slot[1] <= MOST_NAMED else "" for stage in stages],
        ["middle right" if alone else "middle center" for alone in single],
        palette.text,
        14,
    ) | {"name": "titles"}


def _counts(stages: Sequence[Stage], spans: Sequence[Span], palette: Palette) -> dict[str, Any]:
    """How many parameters: in the box's upper right corner; of boxes side by side once, after the last of them."""
    kept = [
        (span, stage, stage.slot[1] > 1)
        for span, stage in zip(spans, stages, strict=True)
        if stage.count and stage.slot[0] == stage.slot[1] - 1 and not (stage.moved and stage.slot[1] > 1)
    ]
    return _texts(
        [right - 0.008 if not several else right for (_, right), _, several in kept],
        [stage.row + (0.57 if not several else 0.91) for _, stage, several in kept],
        [
            f"each {stage.count.split()[0]}" if several and not stage.moved else stage.count
            for _, stage, several in kept
        ],
        "middle left",
        palette.muted,
        13,
    ) | {"name": "parameters"}


def _written(stages: Sequence[Stage], spans: Sequence[Span], palette: Palette) -> dict[str, Any]:
    """Words in a box, where others have a vector."""
    own = [(left, stage) for (left, _), stage in zip(spans, stages, strict=True) if stage.text]
    places = [left + 0.008 for left, _ in own], [stage.row + sum(STRIP) / 2 for _, stage in own]
    return _texts(*places, [stage.text for _, stage in own], "middle right", palette.text, 14) | {"name": "words"}


def _shapes(links: Sequence[Link], stages: Sequence[Stage], spans: Sequence[Span], palette: Palette) -> dict[str, Any]:
    """The shape of what leaves a box, once for each box, above its middle; of boxes side by side above the first."""
    found: dict[tuple[int, int], tuple[float, float, str]] = {}
    for link in links:
        one = stages[link.start]
        if one.slot[0] == 0:
            left, right = spans[link.start]
            fans = max(one.slot[1], stages[link.end].slot[1]) > 1
            found.setdefault(
                (one.lane, one.row), (left if fans else (left + right) / 2 + 0.012, one.row + 0.92, link.shape)
            )
    x, y, words = zip(*found.values(), strict=True) if found else ((), (), ())
    return _texts(x, y, words, "middle right", palette.muted, 13) | {"name": "shapes"}


def _texts(
    x: Sequence[float], y: Sequence[float], words: Sequence[str], side: str | Sequence[str], colour: str, size: int
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "text",
        "x": list(chain(x)),
        "y": list(chain(y)),
        "text": [lowered(safe(each)) for each in words],
        "textposition": side,
        "textfont": {"size": size, "color": colour},
        "hoverinfo": "skip",
        "cliponaxis": False,
    }
