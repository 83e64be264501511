"""Which state of a network can be computed when; and how long a pass takes for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import DASHES, SYMBOLS
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, colour_scale, template

MOST_LETTERS = 18
"""More rows or moments than this, and a cell has no room for its layer's number."""
GAP = 0.07
"""Between two panels, as a share of the height."""
STEPS = (1, 2, 4, 5, 10, 20, 25, 50, 100, 200, 500, 1000)
"""From one tick to the next."""
ABOVE = 34
"""Pixels over the first panel, for the button that zooms back and the one that takes away: there stand its words."""


@dataclass(frozen=True)
class Schedule:
    """One way to compute all states of a stack."""

    title: str
    moments: np.ndarray
    """int [layer, position], from 1."""

    @property
    def last(self) -> int:
        return int(self.moments.max())

    def cells(self, columns: int) -> np.ndarray:
        """The layer that is computed at a position in a moment, float [position, moment]; nan where none is."""
        layers, places = self.moments.shape
        table = np.full((places, columns), np.nan, dtype=np.float32)
        for layer in range(layers):
            table[np.arange(places), self.moments[layer] - 1] = layer
        return table


def schedule_heatmaps(schedules: Sequence[Schedule], *, palette: Palette = LIGHT) -> go.Figure:
    """One panel above the other on one clock: column = moment, row = position, colour and number = layer.

    Look for how far to the right the last filled column stands.
    """
    columns, layers = max(each.last for each in schedules), schedules[0].moments.shape[0]
    size = (1 - GAP * (len(schedules) - 1)) / len(schedules)
    traces: list[dict[str, object]] = []
    layout: dict[str, object] = {}
    for number, each in enumerate(schedules):
        n, top = "" if number == 0 else str(number + 1), 1 - number * (size + GAP)
        traces.append(_panel(each, columns, layers, palette) | {"xaxis": f"x{n}", "yaxis": f"y{n}"})
        under = number == len(schedules) - 1
        layout[f"xaxis{n}"] = {
            "anchor": f"y{n}",
            "range": [0.5, columns + 0.5],
            "showgrid": False,
            "showticklabels": under,
            "tickvals": _ticks(columns, 9),
            "title": {"text": "sequential step" if under else ""},
        }
        places = each.moments.shape[1]
        layout[f"yaxis{n}"] = {
            "anchor": f"x{n}",
            "domain": [max(0.0, top - size), top],
            "range": [places + 0.5, 0.5],
            "showgrid": False,
            "tickvals": _ticks(places, 8 if places <= 8 else 5),
            "title": {"text": "position"},
        }
    return go.Figure(
        traces,
        {
            "template": template(palette),
            "showlegend": False,
            "margin": {"t": ABOVE, "r": 12},
            "annotations": [_said(each, number, palette) for number, each in enumerate(schedules)],
            **layout,
        },
    )


def _panel(each: Schedule, columns: int, layers: int, palette: Palette) -> dict[str, object]:
    cells = each.cells(columns)
    lettered = max(cells.shape) <= 2 * MOST_LETTERS and cells.shape[0] <= MOST_LETTERS
    return {
        "type": "heatmap",
        "x": np.arange(1, columns + 1),
        "y": np.arange(1, len(cells) + 1),
        "z": cells,
        "zmin": -1,
        "zmax": max(layers - 1, 1),
        "colorscale": colour_scale(palette.scale),
        "showscale": False,
        "hoverongaps": False,
        "xgap": 1,
        "ygap": 1,
        "texttemplate": "%{z}" if lettered else None,
        "textfont": {"size": 14},
        "hovertemplate": "sequential step %{x}: layer %{z} at position %{y}<extra></extra>",
        "name": each.title,
    }


def _said(each: Schedule, number: int, palette: Palette) -> dict[str, object]:
    """The panel's name and how many moments it takes, above on the right, where a schedule is empty."""
    n = "" if number == 0 else str(number + 1)
    moments = f"{each.last} sequential step{'s' if each.last > 1 else ''}"
    return {
        "x": 1,
        "xref": f"x{n} domain",
        "xanchor": "right",
        "y": 0.96,
        "yref": f"y{n} domain",
        "yanchor": "top",
        "align": "right",
        "showarrow": False,
        "text": f"{safe(each.title)}<br><b>{moments}</b>",
        "font": {"size": 17, "color": palette.text},
    }


def _ticks(last: int, most: int) -> list[int]:
    """Multiples of one round number, at most so many: of 1, if they are few enough."""
    step = next(each for each in STEPS if each * most >= last)
    return list(range(step, last + 1, step))


@dataclass(frozen=True)
class Timing:
    """A network's milliseconds, float [length]."""

    name: str
    milliseconds: np.ndarray


def pass_lines(lengths: Sequence[int], timings: Sequence[Timing], *, palette: Palette = LIGHT) -> go.Figure:
    """Milliseconds of one pass against the length of what is read. Look for which line rises, and how steeply."""
    traces = [
        {
            "type": "scatter",
            "x": list(lengths),
            "y": each.milliseconds.astype(np.float32),
            "mode": "lines+markers",
            "line": {"color": palette.categorical[place], "width": 3, "dash": DASHES[place]},
            "marker": {"size": 9, "symbol": SYMBOLS[place]},
            "cliponaxis": False,
            "hovertemplate": f"{safe(each.name)}, %{{x}} tokens: %{{y:.2f}} ms<extra></extra>",
            "name": each.name,
        }
        for place, each in enumerate(timings)
    ]
    top = max(float(each.milliseconds.max()) for each in timings)
    layout = {
        "template": template(palette),
        "xaxis": {"title": {"text": "tokens read"}, "range": [0, 1.03 * lengths[-1]], "nticks": 6},
        "yaxis": {"title": {"text": "milliseconds of a pass"}, "range": [0, 1.08 * top], "nticks": 6},
        "legend": {"font": {"size": 15}},
        "margin": {"r": 16},
    }
    return go.Figure(traces, layout)
