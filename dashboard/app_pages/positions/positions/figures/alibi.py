"""ALiBi: what distance costs in each head, and what it leaves of a weight."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.encodings import DASHES, MOST_MARKERS, few_ticks, matrix_heatmap
from dashboard.theme import LIGHT, Palette, template


def slope_bars(slopes: np.ndarray, *, chosen: int, palette: Palette = LIGHT) -> go.Figure:
    """The slope of each head, float [head]; the `chosen` one is dark. A click says its head as customdata."""
    heads = list(range(len(slopes)))
    texts = [f"{slope:.3g}" for slope in slopes]
    bars = {
        "type": "bar",
        "x": heads,
        "y": slopes.astype(np.float32),
        "marker": {"color": [palette.measured if head == chosen else palette.before for head in heads]},
        "text": texts,
        "textposition": "outside",
        "textfont": {"size": 14, "color": palette.text},
        "textangle": 0,
        "cliponaxis": False,
        "name": "slope",
        "customdata": heads,
        "hovertemplate": "head %{x}: %{y:.4g} a position<extra></extra>",
    }
    layout = {
        "template": template(palette),
        "xaxis": {"title": {"text": "head"}, "dtick": 1, "showgrid": False},
        "yaxis": {"title": {"text": "slope m"}, "range": [0, 1.15 * float(slopes.max())], "nticks": 6},
    }
    return go.Figure([bars], layout)


def bias_heatmap(bias: np.ndarray, *, palette: Palette = LIGHT) -> go.Figure:
    """What a head adds to each score, float [query, key], on the diverging scale centred on 0."""
    places = np.arange(1, len(bias) + 1)
    return matrix_heatmap(
        bias,
        (places, places),
        "query at %{y}, key at %{x}: %{z:.3f}",
        signed=True,
        across={"title": {"text": "key: looked at"}, "constrain": "domain", **few_ticks(len(bias))},
        down={
            "title": {"text": "query: who looks"},
            "scaleanchor": "x",
            "constrain": "domain",
            "constraintoward": "top",
        },
        palette=palette,
    )


def fading_lines(slopes: np.ndarray, length: int, *, chosen: int, palette: Palette = LIGHT) -> go.Figure:
    """e^(-m · distance) for each head: what is left of a key's weight, before the weights are made to sum to one."""
    distance = np.arange(length)
    lines = [
        {
            "type": "scatter",
            "x": distance,
            "y": np.exp(-slope * distance).astype(np.float32),
            "mode": "lines+markers" if length <= MOST_MARKERS else "lines",
            "line": {
                "width": 4 if head == chosen else 2,
                "dash": DASHES[head % len(DASHES)],
                "color": palette.categorical[head % len(palette.categorical)],
            },
            "marker": {"size": 7, "symbol": head % 8},
            "name": f"head {head}",
            "hovertemplate": f"head {head}, %{{x}} away: %{{y:.3f}} is left<extra></extra>",
        }
        for head, slope in enumerate(slopes)
    ]
    layout = {
        "template": template(palette),
        "showlegend": True,
        "legend": {"entrywidth": 0, "font": {"size": 14}},
        "xaxis": {
            "title": {"text": "distance from query to key"},
            "range": [-0.5, length - 0.5],
            **({"dtick": 1} if length <= 16 else {"nticks": 10}),
        },
        "yaxis": {"title": {"text": "share left"}, "range": [0, 1.05], "nticks": 6},
    }
    return go.Figure(lines, layout)
