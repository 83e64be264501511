"""A number of models of several widths, with the right code and with the mistake: a line each, and every seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.app_pages.learn.mistakes.figures.both_models import RIGHT, WRONG
from dashboard.figures.kit.lines import end_name, level
from dashboard.theme import LIGHT, Palette, template

APART = 0.06
"""How far the seeds of both codes stand apart, in steps from width to width."""


def by_width_curves(
    widths: Sequence[int],
    right: np.ndarray,
    wrong: np.ndarray,
    *,
    title: str,
    chance: float | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Shares from 0 to 1, float [width, seed] each, against the width; `title` names them.

    Lines: the mean over seeds; small marks: each seed. Dashed: chance, where there is one.
    """
    places, traces = np.arange(len(widths)), []
    for values, name, colour, dash, shift in (
        (right, RIGHT, 0, "solid", -APART),
        (wrong, WRONG, 1, "dot", APART),
    ):
        paint = palette.categorical[colour]
        traces += [
            {
                "type": "scatter",
                "x": np.repeat(places + shift, values.shape[1]),
                "y": values.ravel().astype(np.float32),
                "mode": "markers",
                "marker": {"size": 7, "color": paint, "opacity": 0.55},
                "showlegend": False,
                "hovertemplate": "%{y:.2f}<extra>a seed, " + name + "</extra>",
                "name": f"{name}, each seed",
            },
            {
                "type": "scatter",
                "x": places,
                "y": values.mean(axis=1).astype(np.float32),
                "mode": "lines+markers",
                "line": {"color": paint, "width": 3, "dash": dash},
                "marker": {"size": 9, "color": paint},
                "hovertemplate": "%{y:.2f}<extra>mean, " + name + "</extra>",
                "name": name,
            },
        ]
    layout = {
        "template": template(palette),
        "hovermode": "x unified",
        "xaxis": {
            "title": {"text": "width of the model, d_model"},
            "tickvals": places,
            "ticktext": [str(width) for width in widths],
            "range": [-0.3, len(widths) - 0.7],
            "showgrid": False,
        },
        "yaxis": {"title": {"text": title}, "range": [-0.03, 1.05], "tickformat": ".1f"},
        "margin": {"r": 8 if chance is None else 62},
        "annotations": [] if chance is None else [end_name(chance, f"chance<br>{chance:.2f}", palette.chance)],
        "shapes": [] if chance is None else [level(chance, {"color": palette.chance, "width": 2, "dash": "dot"})],
    }
    return go.Figure(traces, layout)
