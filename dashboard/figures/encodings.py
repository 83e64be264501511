"""Positional encodings: the table, single dimensions as waves, and how alike positions are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.theme import LIGHT, Palette, colour_scale, template

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")


def encoding_heatmap(table: np.ndarray, *, title_x: str = "dimension", palette: Palette = LIGHT) -> go.Figure:
    """The encoding, float [position, dimension], on a diverging scale centred on 0."""
    positions, dimensions = table.shape
    figure = go.Figure()
    figure.add_heatmap(
        z=table.astype(np.float32),
        x0=0,
        dx=1,
        y0=1,
        dy=1,
        **_signed(table, palette),
        hovertemplate="position %{y}, column %{x}: %{z:.3f}<extra></extra>",
    )
    figure.update_layout(
        template=template(palette),
        xaxis={"title": {"text": title_x}, "range": [-0.5, dimensions - 0.5], "showgrid": False, **_ticks(dimensions)},
        yaxis={"title": {"text": "position"}, "range": [positions + 0.5, 0.5], "showgrid": False, **_ticks(positions)},
    )
    return figure


def similarity_heatmap(similarity: np.ndarray, *, palette: Palette = LIGHT) -> go.Figure:
    """Inner products of positions, float [position, position]."""
    n = len(similarity)
    figure = go.Figure()
    figure.add_heatmap(
        z=similarity.astype(np.float32),
        x0=1,
        dx=1,
        y0=1,
        dy=1,
        **_signed(similarity, palette),
        hovertemplate="position %{y} and position %{x}: %{z:.2f}<extra></extra>",
    )
    figure.update_layout(
        template=template(palette),
        xaxis={"title": {"text": "position"}, "range": [0.5, n + 0.5], "showgrid": False, "constrain": "domain", **_ticks(n)},
        yaxis={
            "title": {"text": "position"},
            "range": [n + 0.5, 0.5],
            "showgrid": False,
            "scaleanchor": "x",
            "constrain": "domain",
            **_ticks(n),
        },
    )
    return figure


def encoding_waves(
    table: np.ndarray, dimensions: Sequence[int], names: Sequence[str], *, palette: Palette = LIGHT
) -> go.Figure:
    """Chosen columns of the encoding, float [position, dimension], as lines over the positions."""
    places = np.arange(1, len(table) + 1)
    figure = go.Figure()
    for i, (dimension, name) in enumerate(zip(dimensions, names, strict=True)):
        figure.add_scatter(
            x=places,
            y=table[:, dimension].astype(np.float32),
            mode="lines+markers",
            line={"width": 2.5, "dash": DASHES[i % len(DASHES)], "color": palette.categorical[i % 10]},
            marker={"size": 6, "symbol": i % 8},
            name=name,
            hovertemplate=f"{name} at position %{{x}}: %{{y:.3f}}<extra></extra>",
        )
    figure.update_layout(
        template=template(palette),
        showlegend=True,
        xaxis={"title": {"text": "position"}, **_ticks(len(table))},
        yaxis={"title": {"text": "value"}},
    )
    return figure


def _signed(values: np.ndarray, palette: Palette) -> dict[str, object]:
    limit = float(np.abs(values).max()) or 1.0
    return {
        "zmin": -limit,
        "zmax": limit,
        "colorscale": colour_scale(palette.signed),
        "colorbar": {"thickness": 10, "outlinewidth": 0, "tickfont": {"size": 13}, "nticks": 5, "xpad": 4},
    }


def _ticks(n: int) -> dict[str, object]:
    """Whole numbers only."""
    return {"dtick": 1} if n <= 16 else {"nticks": 10}
