"""Weights of several layers beside each other, and how alike they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import ROOM, bar_ends, scaled
from dashboard.figures.kit.labels import ink
from dashboard.figures.kit.numbers import signed
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, colour_scale, template

MOST_SHOWN = 48
"""Hidden units, and dimensions, of each layer that are drawn: a cell has to be seen."""
MOST_NUMBERS = 8
"""More layers than this, and their cosines are colours without numbers."""
APART = 0.03
"""Between two panels, as a share of the width."""


def weight_heatmaps(weights: Sequence[np.ndarray], names: Sequence[str], *, palette: Palette = LIGHT) -> go.Figure:
    """The first corner of each matrix, float [d_ff, d_model], side by side on one diverging scale centred on 0.

    Look whether any row of one stands in another.
    """
    corners = [each[:MOST_SHOWN, :MOST_SHOWN] for each in weights]
    limit = max(float(np.abs(each).max(initial=0.0)) for each in corners) or 1.0
    wide = (1 - APART * (len(corners) - 1)) / len(corners)
    colours = scaled(-limit, limit, palette.signed)
    traces: list[dict[str, object]] = []
    layout: dict[str, object] = {}
    words = []
    for number, (values, name) in enumerate(zip(corners, names, strict=True)):
        n, left = "" if number == 0 else str(number + 1), number * (wide + APART)
        traces.append(
            {
                "type": "heatmap",
                "z": values.astype(np.float32),
                **colours,
                "showscale": number == 0,
                "xaxis": f"x{n}",
                "yaxis": f"y{n}",
                "name": name,
                "hovertemplate": f"{safe(name)}: hidden unit %{{y}}, dimension %{{x}}: %{{z:.3f}}<extra></extra>",
            }
        )
        layout[f"xaxis{n}"] = {
            "anchor": f"y{n}",
            "domain": [left, min(1.0, left + wide)],
            "showgrid": False,
            "nticks": 4,
            "title": {"text": "dimension"},
        }
        layout[f"yaxis{n}"] = {
            "anchor": f"x{n}",
            "range": [len(values) - 0.5, -0.5],
            "showgrid": False,
            "showticklabels": number == 0,
            "nticks": 4,
            "title": {"text": "hidden unit" if number == 0 else ""},
        }
        above = {"x": 0.5, "xref": f"x{n} domain", "y": 1, "yref": f"y{n} domain", "yanchor": "bottom"}
        words.append({**above, "text": f"<b>{safe(name)}</b>", "showarrow": False, "font": {"size": 16}})
    bar = {**colours["colorbar"], "y": 1.0, "yref": "container", "yanchor": "top", "ypad": 7}  # type: ignore[dict-item]
    traces[0]["colorbar"] = bar
    layout |= {
        "template": template(palette),
        "showlegend": False,
        "margin": {"t": ROOM + 24, "r": 8},
        "annotations": [*words, *({**end, "yshift": 35} for end in bar_ends(-limit, limit, palette))],
    }
    return go.Figure(traces, layout)


def cosine_heatmap(cosine: np.ndarray, names: Sequence[str], *, palette: Palette = LIGHT) -> go.Figure:
    """How alike layers are, float [layer, layer] from -1 to 1, on the diverging scale; numbers while there is room."""
    places = list(range(len(names)))
    ticks = {"tickvals": places, "ticktext": [safe(name) for name in names], "showgrid": False, "ticks": ""}
    lettered = len(names) <= MOST_NUMBERS
    words = [
        {
            "x": column,
            "y": row,
            "text": signed(cosine[row, column]),
            "showarrow": False,
            "font": {"size": 15, "color": ink((float(cosine[row, column]) + 1) / 2, palette.signed, palette)},
        }
        for row in places
        for column in places
        if lettered
    ]
    said = [
        [f"{safe(one)} and {safe(other)}: {cosine[i, j]:.3f}" for j, other in enumerate(names)]
        for i, one in enumerate(names)
    ]
    cells = {
        "type": "heatmap",
        "z": np.clip(cosine, -1, 1).astype(np.float32),
        "zmin": -1,
        "zmax": 1,
        "colorscale": colour_scale(palette.signed),
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "text": said,
        "hovertemplate": "%{text}<extra></extra>",
        "name": "cosine",
    }
    layout = {
        "template": template(palette),
        "xaxis": {**ticks, "tickangle": 0 if lettered else None},
        "yaxis": {**ticks, "range": [len(names) - 0.5, -0.5]},
        "annotations": words,
        "margin": {"t": 4, "r": 4},
    }
    return go.Figure([cells], layout)
