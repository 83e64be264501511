"""Two settings against each other: a cell a combination, its colour what came out of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import ROOM, bar_ends, flat, scaled
from dashboard.figures.kit.labels import cell_numbers, name_axis
from dashboard.figures.kit.lines import frame
from dashboard.figures.kit.token_axis import lines_of, safe
from dashboard.theme import LIGHT, Palette, template

LEAST, ROW, AROUND = 34, 58, 84
"""Pixels of a row of many and of few, and of what stands around all of them."""
MANY = 10


def phase_height(rows: int) -> int:
    """Pixels of the whole picture."""
    return AROUND + rows * (ROW if rows <= MANY else LEAST)


def phase_heatmap(
    values: np.ndarray,
    texts: np.ndarray,
    sentences: Sequence[Sequence[str]],
    across: tuple[str, Sequence[str]],
    up: tuple[str, Sequence[str]],
    *,
    ends: tuple[float, float],
    chosen: tuple[int, int],
    palette: Palette = LIGHT,
) -> go.Figure:
    """A value a cell, float [row, column], nan where there is none: such a cell is grey.

    `ends` are those of the colours. `texts`, str [row, column], stand in the cells; `sentences` are what the pointer
    says. `across` and `up` are the titles and the values of both axes; `chosen`, row and column, is outlined. Look for
    where the colour turns.
    """
    columns, rows = len(across[1]), len(up[1])
    grid = {"x": list(range(columns)), "y": list(range(rows)), "xgap": 2, "ygap": 2}
    hover = {
        "hovertext": [[lines_of(each) for each in row] for row in sentences],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    none = np.where(np.isnan(values), 1.0, math.nan).astype(np.float32)
    traces: list[dict[str, object]] = [
        {
            "type": "heatmap",
            **grid,
            **hover,
            "z": values.astype(np.float32),
            **scaled(*ends, palette.scale),
            "name": "value",
        }
    ]
    if np.isfinite(none).any():
        ground = {**flat(palette.forbidden), "meta": {"numbers": False}, "name": "without a value"}
        traces.append({"type": "heatmap", **grid, **hover, "z": none, **ground})
    width, size = 140 + 52 * columns, 14 if rows <= MANY else 12
    marks = cell_numbers(values, str, ends, palette.scale, palette, width=width, size=size, marks=texts)
    traces.append(marks)
    rest = np.where(np.isnan(values), 0.0, math.nan)
    traces.append(
        {
            **cell_numbers(rest, str, (0.0, 1.0), palette.scale, palette, width=width, size=size, marks=texts),
            "textfont": {"size": size, "color": palette.text},
        }
    )
    row, column = chosen
    layout = {
        "template": template(palette),
        "showlegend": False,
        "xaxis": {
            "tickvals": list(range(columns)),
            "ticktext": [safe(each) for each in across[1]],
            "title": {"text": across[0]},
            "showgrid": False,
            "range": [-0.52, columns - 0.48],
        },
        "yaxis": {
            **name_axis(up[1]),
            "title": {"text": up[0]},
            "range": [rows - 0.48, -0.52],
        },
        "shapes": [frame(column - 0.5, row - 0.5, column + 0.5, row + 0.5, {"color": palette.chance, "width": 4})],
        "annotations": bar_ends(*ends, palette),
        "margin": {"t": ROOM + 4, "b": 48, "r": 8},
        "meta": {"tokens": {"x": list(across[1]), "y": list(up[1])}},
    }
    return go.Figure(traces, layout)
