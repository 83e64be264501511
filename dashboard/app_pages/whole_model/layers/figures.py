"""What each part of each layer adds to a logit; and long patterns downsampled to blocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import bar_layout, flat, scaled
from dashboard.figures.kit.labels import LABEL_ROOM, cell_numbers, name_axis
from dashboard.figures.kit.numbers import signed
from dashboard.figures.kit.token_axis import matrix_axes, safe
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
    width, one_digit = LABEL_ROOM + NUMBER_ROOM * len(parts), partial(signed, digits=1)
    numbers = [cell_numbers(writes, one_digit, (-limit, limit), palette.signed, palette, width=width, size=15)]
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
    return go.Figure([cells, *(numbers if len(parts) <= MOST_NUMBERED else [])], layout)


# --- a pattern too long for its cells to be seen: square blocks in their place, each with its largest cell

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
