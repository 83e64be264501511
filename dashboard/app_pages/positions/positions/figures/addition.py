"""Two vectors and their sum: three rows on one scale, and one column of them in numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import frame
from dashboard.figures.kit.numbers import written
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, colour_scale, template


def addition_rows(
    token: np.ndarray, position: np.ndarray, *, names: Sequence[str], column: int, palette: Palette = LIGHT
) -> go.Figure:
    """float [d_model] each: the token's vector, the position's and below them the sum, on one scale around 0.

    The `column` is framed, and its three numbers stand beside the rows.
    """
    rows = np.stack([token, position, token + position])
    limit = float(np.abs(rows).max()) or 1.0
    cells = {
        "type": "heatmap",
        "z": rows.astype(np.float32),
        "zmin": -limit,
        "zmax": limit,
        "colorscale": colour_scale(palette.signed),
        "showscale": False,
        "ygap": 6,
        "hovertemplate": "%{y}, dimension %{x}: %{z:.3f}<extra></extra>",
        "name": "values",
    }
    beside = {"x": 1, "xref": "paper", "xanchor": "left", "xshift": 8, "showarrow": False}
    signs = ("", "+ ", "= ")
    numbers = [
        {
            **beside,
            "y": row,
            "text": f"<b>{sign}{written(float(rows[row, column]), 2)}</b>",
            "font": {"size": 17, "color": palette.text},
        }
        for row, sign in enumerate(signs)
    ]
    title = {**beside, "y": -0.5, "yanchor": "bottom", "text": f"dim. {column}", "font": {"size": 14}}
    line = {"color": palette.text, "width": 2.5}
    layout = {
        "template": template(palette),
        "xaxis": {"title": {"text": "dimension"}, "showgrid": False, "zeroline": False},
        "yaxis": {
            "tickvals": [0, 1, 2],
            "ticktext": [f"{sign}{safe(name)}" for sign, name in zip(signs, names, strict=True)],
            "tickfont": {"size": 15},
            "range": [2.5, -0.5],
            "showgrid": False,
            "zeroline": False,
            "ticks": "",
        },
        "shapes": [frame(column - 0.5, -0.5, column + 0.5, 2.5, line)],
        "annotations": [title, *numbers],
        "margin": {"t": 24, "l": 8, "r": 84, "b": 8},
    }
    return go.Figure([cells], layout)
