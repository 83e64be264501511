"""A pattern too long for its cells to be seen: square blocks in their place, each with its largest cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.colour_bar import bar_layout, flat, scaled
from dashboard.figures.token_axis import matrix_axes
from dashboard.theme import LIGHT, Palette, template

MOST = 96
"""Cells on a side that are drawn at most."""


def block_of(queries: int, keys: int) -> int:
    """How many cells a block needs on a side so that no more than MOST blocks stand side by side."""
    return -(-max(queries, keys) // MOST)


def coarse_heatmap(
    pattern: np.ndarray,
    mask: np.ndarray,
    block: int,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    link: str | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Float [query, key] from 0 to 1, drawn as the largest cell of each block; grey where a whole block is forbidden.

    `queries` and `keys` are all their tokens, of which some are named beside it. Positions count from 1. A largest
    cell, not a mean: a single bright key stays to be seen.
    """
    values, seen = _largest(np.where(mask, pattern, 0.0), block), _largest(mask, block)
    places = {"x0": (1 + block) / 2, "dx": block, "y0": (1 + block) / 2, "dy": block}
    cells = {
        "type": "heatmap",
        "z": np.where(seen, values, np.nan).astype(np.float32),
        **places,
        **scaled(0.0, 1.0, palette.scale),
        "hoverongaps": False,
        "hovertemplate": "queries around %{y}, keys around %{x}: at most %{z:.2f}<extra></extra>",
        "name": "values",
    }
    forbidden = {
        "type": "heatmap",
        "z": np.where(seen, np.nan, 0).astype(np.float32),
        **places,
        **flat(palette.forbidden),
        "hoverongaps": False,
        "hovertemplate": "queries around %{y} may not see keys around %{x}<extra></extra>",
        "name": "forbidden",
    }
    axes = matrix_axes(("query: who looks", queries), ("key: looked at", keys))
    layout = {
        "template": template(palette),
        **{name: _from_one(axis) for name, axis in axes.items()},
        **bar_layout(0.0, 1.0, palette),
        "meta": {"link": link} if link else None,
    }
    return go.Figure([cells] if seen.all() else [cells, forbidden], layout)


def _from_one(axis: dict[str, Any]) -> dict[str, Any]:
    """An axis of tokens, its places counted from 1."""
    return axis | {name: [place + 1 for place in axis[name]] for name in ("tickvals", "range")}


def _largest(cells: np.ndarray, block: int) -> np.ndarray:
    """The largest of each square block; the last ones may be smaller."""
    rows, columns = cells.shape
    padded = np.pad(cells, ((0, -rows % block), (0, -columns % block)))
    return padded.reshape(len(padded) // block, block, -1, block).max(axis=(1, 3))
