"""What scores are made of, and what the softmax makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.notation import lowered
from dashboard.figures.kit.numbers import signed
from dashboard.theme import LIGHT, Palette, template


def fit_bars(
    angles: Sequence[float | None],
    cosines: np.ndarray,
    scores: np.ndarray,
    shares: np.ndarray,
    *,
    palette: Palette = LIGHT,
) -> go.Figure:
    """For each key, all [key]: its angle in degrees, cos θ, the score, and the share that the softmax makes of it."""
    names = [f"k_{i + 1}" + ("" if angle is None else f", {abs(angle):.0f}°") for i, angle in enumerate(angles)]
    reach = 1.9 * max(1.0, float(np.abs(scores).max()))
    panels = [
        ("cos θ", cosines, (-2.4, 1.9), palette.categorical[1]),
        ("score e", scores, (-reach, reach), palette.measured),
        ("share α", shares, (0.0, 1.45), palette.categorical[2]),
    ]
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    words = []
    for number, (name, values, span, colour) in enumerate(panels):
        index = "" if number == 0 else str(number + 1)
        left = number * 0.35
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": values.tolist(),
                "y": names,
                "name": name,
                "xaxis": f"x{index}",
                "yaxis": f"y{index}",
                "marker": {"color": colour},
                "text": [signed(value) for value in values],
                "textposition": "outside",
                "textfont": {"size": 14, "color": palette.text},
                "cliponaxis": False,
                "hovertext": [lowered(each) for each in names],
                "hovertemplate": f"%{{hovertext}}: {name} %{{x:.4f}}<extra></extra>",
            }
        )
        axes[f"xaxis{index}"] = {
            "domain": [left, left + 0.3],
            "anchor": f"y{index}",
            "range": list(span),
            "zeroline": True,
            "zerolinecolor": palette.muted,
            "showticklabels": False,
            "showgrid": False,
            "fixedrange": True,
        }
        axes[f"yaxis{index}"] = {
            "anchor": f"x{index}",
            "autorange": "reversed",
            "showticklabels": number == 0,
            "tickvals": names,
            "ticktext": [lowered(each) for each in names],
            "fixedrange": True,
            "showgrid": False,
        }
        words.append(
            {
                "x": 0.5,
                "y": 1.0,
                "xref": f"x{index} domain",
                "yref": f"y{index} domain",
                "yanchor": "bottom",
                "text": f"<b>{name}</b>",
                "showarrow": False,
                "font": {"size": 15},
            }
        )
    layout = {"template": template(palette), "showlegend": False, "bargap": 0.35, "margin": {"t": 30, "l": 8, "r": 8}}
    return go.Figure(traces, {**layout, **axes, "annotations": words})
