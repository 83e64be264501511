"""How dot products grow with the width of the vectors, and what a softmax makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.theme import LIGHT, Palette, template


def growth_panels(
    widths: np.ndarray,
    spread: np.ndarray,
    law: np.ndarray,
    shares: tuple[np.ndarray, np.ndarray],
    keys: int,
    *,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Left, against d: the measured spread of q · k as points on its law, √d. Right: the largest of `keys` shares.

    `shares` are those of q · k and of q · k / √d, each float [width].
    """
    plain, scaled = shares
    x = [int(width) for width in widths]
    blue, orange = palette.categorical[0], palette.categorical[1]

    def drawn(name: str, values: np.ndarray, look: dict[str, Any], index: str, unit: str) -> dict[str, Any]:
        return {
            "type": "scatter",
            "x": x,
            "y": values.tolist(),
            "name": name,
            "xaxis": f"x{index}",
            "yaxis": f"y{index}",
            "hovertemplate": f"{name}, d = %{{x}}: {unit} %{{y:.3f}}<extra></extra>",
            "cliponaxis": False,
            **look,
        }

    marks = {"mode": "markers", "marker": {"size": 11, "color": blue}}
    line = {"mode": "lines", "line": {"width": 2, "color": palette.ceiling, "dash": "dash"}}
    undivided = {
        "mode": "lines+markers",
        "line": {"width": 3, "color": orange},
        "marker": {"size": 9, "symbol": "square"},
    }
    divided = {"mode": "lines+markers", "line": {"width": 3, "color": blue}, "marker": {"size": 9}}
    traces = [
        drawn("law", law, line, "", "√d ="),
        drawn("measured", spread, marks, "", "standard deviation"),
        drawn("q · k", plain, undivided, "2", "largest share"),
        drawn("q · k / √d", scaled, divided, "2", "largest share"),
    ]
    across = {"type": "log", "tickvals": x[::3], "title": {"text": "d"}, "fixedrange": True}
    words = [
        _word(x[-4], float(np.log10(law[-4])), "√d", palette.ceiling, "", "right"),
        _word(x[-4], float(plain[-4]), "of q · k", orange, "2", "right"),
        _word(x[-1], float(scaled[-1]), "of q · k / √d", blue, "2", "right"),
        _word(x[0], 1 / keys, f"1/{keys}: all equal", palette.chance, "2", "left"),
    ]
    level = {"type": "line", "xref": "x2 domain", "x0": 0, "x1": 1, "yref": "y2", "y0": 1 / keys, "y1": 1 / keys}
    return go.Figure(
        traces,
        {
            "template": template(palette),
            "showlegend": False,
            "hovermode": "closest",
            "margin": {"t": 12, "b": 48},
            "xaxis": {**across, "domain": [0, 0.45], "anchor": "y"},
            "xaxis2": {**across, "domain": [0.55, 1], "anchor": "y2"},
            "yaxis": {
                "type": "log",
                "title": {"text": "standard deviation of q · k"},
                "tickvals": [1, 2, 4, 8, 16],
                "anchor": "x",
                "fixedrange": True,
            },
            "yaxis2": {
                "range": [0, 1.05],
                "title": {"text": f"largest of {keys} weights"},
                "anchor": "x2",
                "fixedrange": True,
            },
            "annotations": words,
            "shapes": [{**level, "line": {"color": palette.chance, "width": 2, "dash": "dot"}}],
        },
    )


def _word(x: float, y: float, text: str, colour: str, index: str, xanchor: str) -> dict[str, Any]:
    """An annotation above a point; `x` is a width, on an axis of logarithms."""
    return {
        "x": float(np.log10(x)),
        "y": y,
        "xref": f"x{index}",
        "yref": f"y{index}",
        "text": text,
        "showarrow": False,
        "xanchor": xanchor,
        "yanchor": "bottom",
        "yshift": 6,
        "font": {"size": 15, "color": colour},
    }
