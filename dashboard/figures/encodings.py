"""Positional encodings: the table, single dimensions as waves, and how alike positions are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.colour_bar import ROOM, bar_ends, scaled
from dashboard.figures.token_axis import safe
from dashboard.theme import LIGHT, Palette, template

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
MOST_MARKERS = 24
"""More positions than this, and markers would hide their line."""


def encoding_heatmap(
    table: np.ndarray, *, title_x: str = "dimension", signed: bool = True, palette: Palette = LIGHT
) -> go.Figure:
    """The encoding, float [position, dimension]: a row is what is added to a token there.

    On the diverging scale centred on 0; without `signed`, on the sequential one from 0 to the largest value. Look at
    how fast the columns change from row to row.
    """
    positions, dimensions = table.shape
    return _table(
        table,
        (np.arange(1, positions + 1), np.arange(dimensions)),
        f"position %{{y}}, {safe(title_x.split(' ')[0])} %{{x}}: %{{z:.3f}}",
        signed=signed,
        across={"title": {"text": safe(title_x)}},
        palette=palette,
    )


def similarity_heatmap(similarity: np.ndarray, *, palette: Palette = LIGHT) -> go.Figure:
    """Inner products of positions, float [position, position]: the narrower the ridge, the easier to tell apart."""
    places = np.arange(1, len(similarity) + 1)
    return _table(
        similarity,
        (places, places),
        "position %{y} and position %{x}: %{z:.1f}",
        signed=True,
        across={"title": {"text": "position"}, "constrain": "domain"},
        down={"scaleanchor": "x", "constrain": "domain", "constraintoward": "top"},
        palette=palette,
    )


def encoding_waves(
    table: np.ndarray, dimensions: Sequence[int], names: Sequence[str], *, palette: Palette = LIGHT
) -> go.Figure:
    """Chosen columns of the encoding, float [position, dimension], as lines over the positions."""
    places = np.arange(1, len(table) + 1)
    waves = [
        {
            "type": "scatter",
            "x": places,
            "y": table[:, dimension].astype(np.float32),
            "mode": "lines+markers" if len(places) <= MOST_MARKERS else "lines",
            "line": {
                "width": 2.5,
                "dash": DASHES[i % len(DASHES)],
                "color": palette.categorical[i % len(palette.categorical)],
            },
            "marker": {"size": 7, "symbol": i % 8},
            "name": safe(name),
            "hovertemplate": f"{safe(name)} at position %{{x}}: %{{y:.3f}}<extra></extra>",
        }
        for i, (dimension, name) in enumerate(zip(dimensions, names, strict=True))
    ]
    layout = {
        "template": template(palette),
        "showlegend": True,
        "legend": {"entrywidth": 0, "font": {"size": 14}},
        "xaxis": {"title": {"text": "position"}, "range": [0.5, len(table) + 0.5], **_ticks(len(table))},
        "yaxis": {"title": {"text": "value"}, "nticks": 6},
    }
    return go.Figure(waves, layout)


def _table(
    values: np.ndarray,
    places: tuple[np.ndarray, np.ndarray],
    sentence: str,
    *,
    signed: bool,
    across: dict[str, object],
    down: dict[str, object] | None = None,
    palette: Palette,
) -> go.Figure:
    """A matrix of numbers with positions downwards, from 1, and a scale that reaches its largest value.

    `across` and `down` are what else there is to say of the two axes.
    """
    rows, columns = places
    high = float(np.abs(values).max(initial=0.0)) or 1.0
    low = -high if signed else 0.0
    cells = {
        "type": "heatmap",
        "z": values.astype(np.float32),
        "x0": int(columns[0]),
        "dx": 1,
        "y0": int(rows[0]),
        "dy": 1,
        **scaled(low, high, palette.signed if signed else palette.scale),
        "hovertemplate": f"{sentence}<extra></extra>",
        "name": "values",
    }
    layout = {
        "template": template(palette),
        "xaxis": {
            "range": [columns[0] - 0.5, columns[-1] + 0.5],
            "showgrid": False,
            **_ticks(len(columns)),
            **across,
        },
        "yaxis": {
            "title": {"text": "position"},
            "range": [rows[-1] + 0.5, rows[0] - 0.5],
            "showgrid": False,
            **_ticks(len(rows)),
            **(down or {}),
        },
        "margin": {"t": ROOM},
        "annotations": bar_ends(low, high, palette),
    }
    return go.Figure([cells], layout)


def _ticks(n: int) -> dict[str, object]:
    """Whole numbers only."""
    return {"dtick": 1} if n <= 16 else {"nticks": 10}
