"""Pairs of dimensions that turn: the matrix of a step, and the pairs as hands of clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.encodings import few_ticks, matrix_heatmap
from dashboard.figures.kit.lines import frame
from dashboard.theme import LIGHT, Palette, template

APART = 2.3
"""From the middle of one circle to that of the next, in radii."""


def shift_heatmap(
    matrix: np.ndarray, *, high: float | None = None, pairs: bool = False, palette: Palette = LIGHT
) -> go.Figure:
    """The matrix of a step, float [to, from], on the diverging scale; `pairs` frames the blocks that turn."""
    numbers = np.arange(len(matrix))
    line = {"color": palette.muted, "width": 1}
    starts = range(0, len(matrix), 2) if pairs else ()
    return matrix_heatmap(
        matrix,
        (numbers, numbers),
        "to dimension %{y} from dimension %{x}: %{z:.3f}",
        signed=True,
        high=high,
        across={"title": {"text": "from dimension"}, "constrain": "domain", **few_ticks(len(matrix))},
        down={
            "title": {"text": "to dimension"},
            "scaleanchor": "x",
            "constrain": "domain",
            "constraintoward": "top",
        },
        shapes=[frame(start - 0.5, start - 0.5, start + 1.5, start + 1.5, line) for start in starts],
        palette=palette,
    )


@dataclass(frozen=True)
class Clock:
    """One pair of dimensions: its name, and its angle at two positions in radians, `turned` further by the step."""

    name: str
    angle: float
    turned: float


def turning_circles(clocks: Sequence[Clock], here: int, there: int, *, palette: Palette = LIGHT) -> go.Figure:
    """Each pair as a point on a circle, (cosine, sine) of its angle, at the positions `here` and `there`, from 1."""
    middles = [APART * i for i in range(len(clocks))]
    before, after = palette.categorical[0], palette.categorical[1]
    ends = [clock.angle + clock.turned for clock in clocks]
    traces = [
        _arcs(clocks, middles, palette),
        *_hands([clock.angle for clock in clocks], clocks, middles, (here, "circle", before)),
        *_hands(ends, clocks, middles, (there, "diamond", after)),
    ]
    names = [
        {"x": middle, "y": -1.1, "yanchor": "top", "text": clock.name, "showarrow": False, "font": {"size": 14}}
        for middle, clock in zip(middles, clocks, strict=True)
    ]
    bare = {"visible": False, "fixedrange": True}
    layout = {
        "template": template(palette),
        "showlegend": True,
        "legend": {"entrywidth": 0, "font": {"size": 14}},
        "hovermode": "closest",
        "xaxis": {**bare, "range": [-1.15, middles[-1] + 1.15], "constrain": "domain"},
        "yaxis": {**bare, "range": [-1.95, 1.15], "scaleanchor": "x", "constrain": "domain"},
        "shapes": [_circle(middle, palette) for middle in middles],
        "annotations": names,
    }
    return go.Figure(traces, layout)


def _hands(
    angles: Sequence[float], clocks: Sequence[Clock], middles: Sequence[float], look: tuple[int, str, str]
) -> list[dict[str, object]]:
    """Traces: lines from the middle of each circle to its angle at one position, and a mark at the end of each."""
    position, symbol, colour = look
    tips = [(middle + float(np.cos(a)), float(np.sin(a))) for a, middle in zip(angles, middles, strict=True)]
    lines = {
        "type": "scatter",
        "x": [x for tip, middle in zip(tips, middles, strict=True) for x in (middle, tip[0], None)],
        "y": [y for tip in tips for y in (0.0, tip[1], None)],
        "mode": "lines",
        "line": {"width": 2.5, "color": colour},
        "hoverinfo": "skip",
        "showlegend": False,
        "name": f"hands at {position}",
    }
    marks = {
        "type": "scatter",
        "x": [x for x, _ in tips],
        "y": [y for _, y in tips],
        "mode": "markers",
        "marker": {"size": 12, "symbol": symbol, "color": colour},
        "cliponaxis": False,
        "name": f"position {position}",
        "hovertext": [
            f"{clock.name.split('<br>')[0]} at position {position}: {np.degrees(a) % 360:.1f}°, "
            f"cosine {np.cos(a):.3f}, sine {np.sin(a):.3f}"
            for a, clock in zip(angles, clocks, strict=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    return [lines, marks]


def _arcs(clocks: Sequence[Clock], middles: Sequence[float], palette: Palette) -> dict[str, object]:
    """A trace: how far each hand has turned, less whole rounds."""
    x: list[float | None] = []
    y: list[float | None] = []
    for clock, middle in zip(clocks, middles, strict=True):
        way = clock.angle + np.linspace(0, clock.turned % (2 * np.pi), 40)
        x += [*(middle + 0.45 * np.cos(way)).tolist(), None]
        y += [*(0.45 * np.sin(way)).tolist(), None]
    return {
        "type": "scatter",
        "x": x,
        "y": y,
        "mode": "lines",
        "line": {"width": 2, "color": palette.muted},
        "hoverinfo": "skip",
        "showlegend": False,
        "name": "turned",
    }


def _circle(middle: float, palette: Palette) -> dict[str, object]:
    line = {"color": palette.grid, "width": 2}
    return {"type": "circle", "x0": middle - 1, "x1": middle + 1, "y0": -1, "y1": 1, "line": line, "layer": "below"}
