"""Several passes of one input in both modes, and dropped copies of one vector beside the vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.token_axis import safe, token_axis
from dashboard.theme import LIGHT, Palette, template

MOST_LARGE = 24
"""More outputs than this, and their dots are small."""
ASIDE = 0.17
"""How far the dots of each mode stand beside the middle of their output."""


def passes_dots(
    training: np.ndarray, evaluation: np.ndarray, names: Sequence[str], *, palette: Palette = LIGHT
) -> go.Figure:
    """A probability in each pass, float [pass, output] from 0 to 1, in training mode and in evaluation mode.

    Look for dots that lie apart. `names` are the tokens whose probabilities these are, one for each output.
    """
    passes, n = training.shape
    size = 10 if n <= MOST_LARGE else 5
    shown = [safe(name) for name in names]
    modes = (
        ("training mode", training, -ASIDE, palette.chance, "circle-open"),
        ("evaluation mode", evaluation, ASIDE, palette.measured, "diamond"),
    )
    traces = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": np.tile(np.arange(n, dtype=np.float32) + np.float32(aside), passes),
            "y": values.ravel().astype(np.float32),
            "marker": {"size": size, "color": colour, "symbol": symbol, "line": {"width": 1.5}},
            "name": f"{mode}, {passes} passes",
            "customdata": [f"{mode}, pass {i + 1}, '{name}'" for i in range(passes) for name in shown],
            "hovertemplate": "%{customdata}: %{y:.4f}<extra></extra>",
        }
        for mode, values, aside, colour, symbol in modes
    ]
    layout = {
        "template": template(palette),
        "showlegend": True,
        "legend": {"entrywidth": 0, "font": {"size": 14}},
        "hovermode": "closest",
        "xaxis": {
            **token_axis("output: the token that evaluation mode predicts", names, upright=False),
            "range": [-0.6, n - 0.4],
        },
        "yaxis": {"title": {"text": "its probability"}, "range": [-0.03, 1.03], "tickvals": [0, 0.25, 0.5, 0.75, 1]},
    }
    return go.Figure(traces, layout)


def copies_bars(
    vector: np.ndarray, dropped: np.ndarray, mean: np.ndarray, copies: int, *, palette: Palette = LIGHT
) -> go.Figure:
    """A vector, one dropped copy of it and the mean of many, float [dimension] each. Look for a mean on its bars."""
    places = list(range(len(vector)))
    bars = {
        "type": "bar",
        "x": places,
        "y": vector.astype(np.float32),
        "marker": {"color": palette.before},
        "name": "the vector",
        "hovertemplate": "dimension %{x}, the vector: %{y:.3f}<extra></extra>",
    }
    points = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": places,
            "y": values.astype(np.float32),
            "marker": {"size": size, "color": colour, "symbol": symbol, "line": {"width": 1.5}},
            "name": name,
            "hovertemplate": f"dimension %{{x}}, {name}: %{{y:.3f}}<extra></extra>",
        }
        for name, values, size, colour, symbol in (
            ("one dropped copy", dropped, 7, palette.chance, "circle-open"),
            (f"mean of {copies:,} copies", mean, 6, palette.measured, "diamond"),
        )
    ]
    layout = {
        "template": template(palette),
        "showlegend": True,
        "legend": {"entrywidth": 0, "font": {"size": 14}},
        "hovermode": "closest",
        "bargap": 0.2,
        "xaxis": {"title": {"text": "dimension"}, "range": [-0.7, len(vector) - 0.3], "showgrid": False},
        "yaxis": {"title": {"text": "number"}, "zeroline": True, "zerolinecolor": palette.muted},
    }
    return go.Figure([bars, *points], layout)
