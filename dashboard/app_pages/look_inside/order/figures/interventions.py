"""What interventions leave of an accuracy, beside each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import end_name, level
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, template


def intervention_bars(
    accuracy: np.ndarray,
    labels: Sequence[str],
    sentences: Sequence[str],
    *,
    before: float,
    chance: float,
    title: str,
    chosen: int | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Accuracy after each intervention, float [intervention], nan where it cannot be made: a cross stands there.

    A line stands at what it was `before`. A bar's customdata is its place; the `chosen` one has the full colour.
    """
    places = np.arange(len(labels))
    missing = np.flatnonzero(np.isnan(accuracy)).tolist()
    bars = {
        "type": "bar",
        "x": places,
        "y": accuracy.astype(np.float32),
        "width": 0.66,
        "marker": {"color": [palette.measured if i == chosen else palette.before for i in places]},
        "text": ["" if np.isnan(value) else f"{value:.2f}" for value in accuracy],
        "textposition": "outside",
        "textangle": 0,
        "textfont": {"size": 14, "color": palette.text},
        "cliponaxis": False,
        "customdata": places.tolist(),
        "hovertext": [safe(sentence) for sentence in sentences],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "after",
    }
    crosses = {
        "type": "scatter",
        "x": missing,
        "y": np.full(len(missing), 0.04, dtype=np.float32),
        "mode": "text",
        "text": ["✗"] * len(missing),
        "textfont": {"size": 16, "color": palette.muted},
        "hovertext": [safe(sentences[i]) for i in missing],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "cannot be made",
    }
    layout = {
        "template": template(palette),
        "showlegend": False,
        "xaxis": {
            "tickmode": "array",
            "tickvals": places.tolist(),
            "ticktext": [safe(label).replace("\n", "<br>") for label in labels],
            "tickangle": 0,
            "showgrid": False,
            "range": [-0.6, len(labels) - 0.4],
            "title": {"text": safe(title)},
        },
        "yaxis": {"range": [0, 1.14], "tickvals": [0, 0.25, 0.5, 0.75, 1], "title": {"text": "accuracy"}},
        "shapes": [
            level(before, {"color": palette.ceiling, "width": 2}),
            level(chance, {"color": palette.chance, "width": 2, "dash": "dot"}),
        ],
        "annotations": [
            end_name(before, f"before<br>{before:.2f}", palette.ceiling),
            end_name(chance, f"chance<br>{chance:.2f}", palette.chance),
        ],
        "margin": {"t": 6, "r": 58},
        "meta": {"tokens": {"x": [label.replace("-\n", "") for label in labels]}},
    }
    return go.Figure([bars, *([crosses] if len(missing) else [])], layout)
