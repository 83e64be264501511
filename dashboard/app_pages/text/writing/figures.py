"""The likeliest tokens at one place, and the probabilities after temperature, top-k and top-p."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, template

MOST = 1.45
"""Where the axis ends: a bar of length 1 has its number behind it."""


def alternatives_bars(
    words: Sequence[str],
    probabilities: np.ndarray,
    drawn_with: np.ndarray | None,
    came: int,
    *,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Probability of each of `words`, float [word], from the top down, and with which each was to be drawn, if it was.
    The axis is the same for every word, so that a sure one can be told from an unsure one.

    Word number `came` is the one that came: marked, and in bold.
    """
    places = np.arange(len(words))
    names = [safe(word) for word in words]
    said = [f"<b>▸ {name}</b>" if i == came else name for i, name in enumerate(names)]
    bars = [("the model’s probability", probabilities, palette.before)]
    if drawn_with is not None:
        bars.append(("drawn with", drawn_with, palette.measured))
    traces: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "x": values.astype(np.float32),
            "y": places,
            "name": name,
            "marker": {"color": colour},
            "hovertext": [f"'{word}', {name}: {value:.4f}" for word, value in zip(names, values, strict=True)],
            "hovertemplate": "%{hovertext}<extra></extra>",
        }
        for name, values, colour in bars
    ]
    longest = np.max([values for _, values, _ in bars], axis=0)
    traces.append(
        {
            "type": "scatter",
            "mode": "text",
            "x": longest.astype(np.float32),
            "y": places,
            "text": [" " + " → ".join(f"{values[i]:.3f}" for _, values, _ in bars) for i in places],
            "textposition": "middle right",
            "textfont": {"size": 14},
            "cliponaxis": False,
            "hoverinfo": "skip",
            "showlegend": False,
        }
    )
    layout = {
        "template": template(palette),
        "barmode": "group",
        "bargap": 0.25,
        "bargroupgap": 0.0,
        "xaxis": {
            "title": {"text": "probability"},
            "range": [0, MOST],
            "tickvals": [0, 0.25, 0.5, 0.75, 1],
            "fixedrange": True,
        },
        "yaxis": {
            "tickmode": "array",
            "tickvals": places.tolist(),
            "ticktext": said,
            "tickfont": {"size": 15},
            "ticklabelstandoff": 6,
            "range": [len(words) - 0.5, -0.5],
            "fixedrange": True,
            "showgrid": False,
        },
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        "showlegend": drawn_with is not None,
    }
    return go.Figure(traces, layout)
