"""The last vector before and after its norm; logits, probabilities and gradient, a row a token."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.labels import name_axis
from dashboard.figures.kit.numbers import signed
from dashboard.figures.kit.token_axis import elided, safe
from dashboard.theme import LIGHT, Palette, template

GAP = 0.05
"""Between two panels, as a share of the width."""
ROOM = 1.35
"""How far a panel reaches, as a share of its longest bar: the bar's number stands behind it."""


def _share(value: float) -> str:
    return f"{value:.3f}" if value >= 0.0005 else "< 0.001"


def _slope(value: float) -> str:
    return signed(value, 3) if abs(value) >= 0.0005 else "0.000"


def token_panels(
    names: Sequence[str],
    logits: np.ndarray,
    probabilities: np.ndarray,
    gradient: np.ndarray | None,
    right: int | None,
    *,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Logit, probability and, where there is one, the loss' gradient of each token, float [token], the first on top.

    nan stands where several tokens share a row. The token number `right` carries a tick. Probabilities and gradients
    have the same scale at every output.
    """
    top, low = float(np.nanmax(logits)), float(np.nanmin(logits))
    spare = (ROOM - 1) * (max(top, 0.0) - min(low, 0.0) or 1.0)
    panels: list[tuple[str, np.ndarray, Callable[[float], str], dict[str, object]]] = [
        (
            "logit",
            logits,
            lambda value: signed(value, 1),
            {"range": [low - spare if low < 0 else 0.0, top + spare if top > 0 else 0.0], "nticks": 4},
        ),
        ("probability", probabilities, _share, {"range": [0.0, ROOM], "tickvals": [0, 0.5, 1]}),
    ]
    if gradient is not None:
        panels.append(
            ("gradient of the loss", gradient, _slope, {"range": [-2 * ROOM + 1, 2 * ROOM - 1], "tickvals": [-1, 0, 1]})
        )
    marked = [f"{elided(name)} ✓" if i == right else elided(name) for i, name in enumerate(names)]
    width = (1 - GAP * (len(panels) - 1)) / len(panels)
    traces, axes = [], {}
    for i, (title, values, write, axis) in enumerate(panels):
        number = "" if i == 0 else str(i + 1)
        start = i * (width + GAP)
        lines = title.replace(" of ", "<br>of ")  # a phone has no room for it in one
        axes[f"xaxis{number}"] = {"title": {"text": lines, "standoff": 4}, "domain": [start, start + width], **axis}
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": values.astype(np.float32),
                "y": list(range(len(names))),
                "xaxis": f"x{number}",
                "marker": {"color": [palette.right if row == right else palette.measured for row in range(len(names))]},
                "text": ["" if np.isnan(value) else write(float(value)) for value in values],
                "textposition": "outside",
                "textfont": {"size": 13, "color": palette.text},
                "textangle": 0,
                "cliponaxis": False,
                "customdata": [safe(name) for name in names],
                "hovertemplate": f"'%{{customdata}}', {title}: %{{x:.5f}}<extra></extra>",
                "name": title,
            }
        )
    layout = {
        "template": template(palette),
        **axes,
        "yaxis": {
            **name_axis(marked, most=len(marked)),
            "tickfont": {"size": 14},
            "range": [len(names) - 0.5, -0.5],
        },
        "showlegend": False,
        "bargap": 0.25,
    }
    return go.Figure(traces, layout)


def vector_bars(vectors: Sequence[tuple[str, np.ndarray]], *, palette: Palette = LIGHT) -> go.Figure:
    """Vectors of one width, one below the other, float [dimension] each, with their names."""
    n = len(vectors)
    height = (1 - 0.16 * (n - 1)) / n
    traces, axes, titles = [], {}, []
    for i, (name, values) in enumerate(vectors):
        number = "" if i == 0 else str(i + 1)
        top = 1 - i * (height + 0.16)
        axes[f"yaxis{number}"] = {"domain": [max(0.0, top - height), top], "nticks": 4}
        traces.append(
            {
                "type": "bar",
                "x": list(range(len(values))),
                "y": values.astype(np.float32),
                "yaxis": f"y{number}",
                "marker": {"color": palette.measured if i == n - 1 else palette.before},
                "name": safe(name),
                "hovertemplate": f"dimension %{{x}}, {safe(name)}: %{{y:.3f}}<extra></extra>",
            }
        )
        titles.append(
            {
                "text": safe(name),
                "x": 0.0,
                "xref": "paper",
                "xanchor": "left",
                "y": top,
                "yref": "paper",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 14, "color": palette.muted},
            }
        )
    layout = {
        "template": template(palette),
        **axes,
        "xaxis": {"title": {"text": "dimension"}, "showgrid": False, "anchor": "y" if n == 1 else f"y{n}"},
        "annotations": titles,
        "showlegend": False,
        "bargap": 0.15,
        "margin": {"t": 24},
    }
    return go.Figure(traces, layout)
