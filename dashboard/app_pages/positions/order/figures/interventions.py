"""What interventions leave of an accuracy or add to a loss, beside each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.accuracy import SHARES
from dashboard.figures.kit.lines import end_name, level
from dashboard.figures.kit.token_axis import lines_of, safe
from dashboard.theme import LIGHT, Palette, template


def intervention_bars(
    values: np.ndarray,
    labels: Sequence[str],
    sentences: Sequence[str],
    *,
    before: float,
    against: tuple[float, str],
    title: str,
    unit: str,
    chosen: int | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """What was measured after each intervention, float [intervention], nan where it cannot be made: a cross is there.

    A line stands at what it was `before`, a dotted one at `against`, a height and its name. A bar's customdata is its
    place; the `chosen` one has the full colour.
    """
    share = unit == "accuracy"
    top, ticks = (1.0, SHARES) if share else (float(np.nanmax([*values, before, against[0]])), {"nticks": 6})
    places = np.arange(len(labels))
    missing = np.flatnonzero(np.isnan(values)).tolist()
    bars = {
        "type": "bar",
        "x": places,
        "y": values.astype(np.float32),
        "width": 0.66,
        "marker": {"color": [palette.measured if i == chosen else palette.before for i in places]},
        "text": ["" if np.isnan(value) else f"{value:.2f}" for value in values],
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
        "y": np.full(len(missing), 0.04 * top, dtype=np.float32),
        "mode": "text",
        "text": ["✕"] * len(missing),
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
            "ticktext": [lines_of(label) for label in labels],
            "tickangle": 0,
            "showgrid": False,
            "range": [-0.6, len(labels) - 0.4],
            "title": {"text": safe(title)},
        },
        "yaxis": {"range": [0, 1.14 * top], **ticks, "title": {"text": unit}},
        "shapes": [
            level(before, {"color": palette.ceiling, "width": 2}),
            level(against[0], {"color": palette.chance, "width": 2, "dash": "dot"}),
        ],
        "annotations": [
            end_name(before, f"before<br>{before:.2f}", palette.ceiling),
            end_name(against[0], f"{lines_of(against[1])}<br>{against[0]:.2f}", palette.chance),
        ],
        "margin": {"t": 6, "r": 58 if share else 84},
        "meta": {"tokens": {"x": [label.replace("-\n", "") for label in labels]}},
    }
    return go.Figure([bars, *([crosses] if len(missing) else [])], layout)
