"""How sure a model is of the right token at each output, before and after a change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import end_name, level
from dashboard.figures.kit.token_axis import safe, token_axis
from dashboard.theme import LIGHT, Palette, template

MOST_MARKS = 40
"""More outputs than this, and marks above them would touch."""


def probability_dumbbells(
    before: np.ndarray,
    after: np.ndarray,
    labels: Sequence[str],
    flipped: np.ndarray,
    chance: float,
    *,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Probability of the right token, float [output], open circle before and full one after, on a scale from 0 to 1.

    `labels` are the right tokens. `flipped`, bool [output]: another token is said after; it carries a ≠.
    """
    places, none = np.arange(len(labels)), np.full(len(labels), np.nan)
    names = [safe(label) for label in labels]
    words = [
        f"token {i + 1} of the answer ('{names[i]}'): {before[i]:.2f} before, {after[i]:.2f} after"
        + (", the prediction flips" if flipped[i] else "")
        for i in range(len(names))
    ]
    change = {
        "type": "scatter",
        "x": np.stack([places, places, none], axis=1).ravel().astype(np.float32),
        "y": np.stack([before, after, none], axis=1).ravel().astype(np.float32),
        "mode": "lines",
        "line": {"width": 3, "color": palette.before},
        "hoverinfo": "skip",
        "showlegend": False,
        "name": "change",
    }
    circles = [
        {
            "type": "scatter",
            "x": places,
            "y": values.astype(np.float32),
            "mode": "markers",
            "marker": {"color": fill, "line": {"color": rim, "width": width}, "size": 13},
            "hovertext": words,
            "hovertemplate": "%{hovertext}<extra></extra>",
            "name": name,
        }
        for name, values, fill, rim, width in (
            ("before", before, palette.background, palette.muted, 2),
            ("after", after, palette.measured, palette.background, 1),
        )
    ]
    marked = np.flatnonzero(flipped)
    flips = {
        "type": "scatter",
        "x": marked,
        "y": np.full(len(marked), 1.16, dtype=np.float32),
        "mode": "text",
        "text": ["≠"] * len(marked),
        "textfont": {"size": 20, "color": palette.wrong},
        "hoverinfo": "skip",
        "name": "the prediction flips",
        "showlegend": False,
    }
    layout = {
        "template": template(palette),
        "xaxis": {**token_axis("the right token", labels), "range": [-0.6, len(labels) - 0.4]},
        "yaxis": {"range": [-0.06, 1.26], "tickvals": [0, 0.25, 0.5, 0.75, 1], "title": {"text": "its probability"}},
        "shapes": [level(chance, {"color": palette.chance, "width": 2, "dash": "dot"})],
        "annotations": [end_name(chance, f"chance<br>{chance:.2f}", palette.chance)],
        "legend": {
            "y": 1.0,
            "yref": "container",
            "yanchor": "top",
            "x": 0.5,
            "xanchor": "center",
            "font": {"size": 14},
        },
        "margin": {"t": 28, "r": 52},
        "meta": {"tokens": {"x": list(labels)}},
    }
    return go.Figure([change, *circles, *([flips] if len(marked) > 0 and len(labels) <= MOST_MARKS else [])], layout)
