"""Which kind of head forms in which layer, and in how many of the seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import ROOM, bar_ends, scaled
from dashboard.figures.kit.labels import cell_numbers, name_axis
from dashboard.figures.kit.token_axis import lines_of, safe
from dashboard.theme import LIGHT, Palette, template

ROW, AROUND = 64, 54
"""Pixels of a layer, and of what stands around all of them."""


def kinds_height(layers: int) -> int:
    """Pixels of the whole picture."""
    return AROUND + ROW * layers


def kinds_heatmap(
    shares: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    layers: Sequence[str],
    kinds: Sequence[str],
    sentences: Sequence[Sequence[str]],
    *,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Share of the seeds in which at least one head of a layer is of a kind, float [layer, kind], with its interval.

    `sentences` say each cell in words. Look for a cell that is neither 0 nor 1: there the seed decides.
    """
    texts = np.array(
        [
            [f"{share:.2f}<br>{one:.2f}–{other:.2f}" for share, one, other in zip(*row, strict=True)]
            for row in zip(shares, low, high, strict=True)
        ],
        dtype=object,
    )
    cells = {
        "type": "heatmap",
        "z": shares.astype(np.float32),
        "x": list(range(len(kinds))),
        "y": list(range(len(layers))),
        **scaled(0.0, 1.0, palette.scale),
        "xgap": 2,
        "ygap": 2,
        "hovertext": [[lines_of(each) for each in row] for row in sentences],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "share of seeds",
    }
    numbers = cell_numbers(
        shares, str, (0.0, 1.0), palette.scale, palette, width=70 + 58 * len(kinds), size=12, marks=texts
    )
    layout = {
        "template": template(palette),
        "showlegend": False,
        "xaxis": {
            "tickvals": list(range(len(kinds))),
            "ticktext": [safe(kind) for kind in kinds],
            "showgrid": False,
        },
        "yaxis": {**name_axis(layers), "range": [len(layers) - 0.5, -0.5]},
        "annotations": bar_ends(0.0, 1.0, palette),
        "margin": {"t": ROOM + 4, "b": 28, "r": 8},
        "meta": {"tokens": {"x": list(kinds), "y": list(layers)}},
    }
    return go.Figure([cells, numbers], layout)
