"""Who wrote it: what each part of each layer adds to a logit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.colour_bar import bar_layout, scaled
from dashboard.figures.letters import LABEL_ROOM, ink, name_axis
from dashboard.figures.token_axis import safe
from dashboard.theme import LIGHT, Palette, template

MOST_NUMBERED = 14
"""More parts than this, and the numbers in the cells would touch."""
MOST_LEVEL = 10
"""More parts than this, and their names stand on end."""
NUMBER_ROOM = 36
"""Pixels that a cell with a number needs."""


def writes_heatmap(
    writes: np.ndarray, layers: Sequence[str], parts: Sequence[str], *, palette: Palette = LIGHT
) -> go.Figure:
    """What each part adds to a logit, float [layer, part], on the diverging scale; nan where there is no such part.

    The first layer stands below, as the data goes. Letters only where there is room for them.
    """
    limit = float(np.nanmax(np.abs(writes), initial=0.0)) or 1.0
    level = len(parts) <= MOST_LEVEL
    cells = {
        "type": "heatmap",
        "z": writes.astype(np.float32),
        **scaled(-limit, limit, palette.signed),
        "hoverongaps": False,
        "xgap": 2,
        "ygap": 2,
        "customdata": [[f"{safe(part)} of layer {safe(layer)}" for part in parts] for layer in layers],
        "hovertemplate": "%{customdata}: %{z:.2f}<extra></extra>",
        "name": "writes",
    }
    numbers = [_numbers(writes, limit, palette)] if len(parts) <= MOST_NUMBERED else []
    layout = {
        "template": template(palette),
        "xaxis": {
            "tickmode": "array",
            "tickvals": list(range(len(parts))),
            "ticktext": [safe(part).replace("-", "-<br>" if level else "-") for part in parts],
            "tickangle": 0 if level else -90,
            "showgrid": False,
            "ticks": "",
            "range": [-0.5, len(parts) - 0.5],
        },
        "yaxis": {**name_axis([f"layer {layer}" for layer in layers]), "range": [-0.5, len(layers) - 0.5]},
        **bar_layout(-limit, limit, palette),
    }
    return go.Figure([cells, *numbers], layout)


def _numbers(writes: np.ndarray, limit: float, palette: Palette) -> dict[str, object]:
    """The numbers in their cells, where there is such a part."""
    rows, columns = np.nonzero(np.isfinite(writes))
    values = writes[rows, columns].astype(np.float64).tolist()
    return {
        "type": "scatter",
        "x": columns.tolist(),
        "y": rows.tolist(),
        "mode": "text",
        "text": [f"{round(value, 1) + 0.0:.1f}".replace("-", "−") for value in values],
        "textfont": {"size": 15, "color": [ink((value / limit + 1) / 2, palette.signed, palette) for value in values]},
        "hoverinfo": "skip",
        "meta": {"least_width": LABEL_ROOM + NUMBER_ROOM * writes.shape[1]},
        "name": "numbers",
    }
