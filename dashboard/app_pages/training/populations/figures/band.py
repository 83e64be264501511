"""Accuracy by position over many seeds: the median, and the band between which they lie."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.accuracy import ceiling_columns
from dashboard.figures.kit.lines import end_name, level, upright
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, rgb, template

MOST_NAMES = 20
"""More positions than this, and only some of them are named."""
APART = 0.09
"""Names at the right end that are nearer to each other than this would touch."""


def accuracy_band(
    band: np.ndarray,
    ceiling: np.ndarray,
    chance: float,
    names: Sequence[str],
    groups: Sequence[str],
    *,
    seeds: int,
    within: str,
    hit: str = "chance",
    palette: Palette = LIGHT,
) -> go.Figure:
    """By position: float [3 target], the median over the seeds and the shares between which they lie.

    `within` says which of them do. The `ceiling`, float [target], is what can be known; `chance`, called `hit`, what
    guessing gives. Look for a wide band: there seeds differ.
    """
    places = np.arange(len(names))
    middle, low, high = band
    r, g, b = rgb(palette.measured)
    between = {
        "type": "scatter",
        "x": np.concatenate([places, places[::-1]]),
        "y": np.concatenate([high, low[::-1]]).astype(np.float32),
        "fill": "toself",
        "mode": "lines",
        "line": {"color": palette.measured, "width": 0.5},
        "fillcolor": f"rgba({r},{g},{b},0.3)",
        "hoverinfo": "skip",
        "meta": {"numbers": True},
        "name": "band",
    }
    median = {
        "type": "scatter",
        "x": places,
        "y": middle.astype(np.float32),
        "mode": "lines+markers",
        "line": {"color": palette.measured, "width": 3},
        "marker": {"size": 7, "color": palette.measured},
        "hovertext": [
            f"position {i + 1} ({safe(name)}): {middle[i]:.3f} right in the median of {seeds} seeds,<br>"
            f"{within} from {low[i]:.3f} to {high[i]:.3f}<br>"
            f"{'' if np.isnan(ceiling[i]) else f'ceiling {ceiling[i]:.2f}, '}{hit} {chance:.2f}"
            for i, name in enumerate(names)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "cliponaxis": False,
        "name": "median",
    }
    every = -(-len(names) // MOST_NAMES)
    shown = list(range(0, len(names), every))
    known = bool(np.isfinite(ceiling).any())
    labels = [end_name(chance, f"{hit}<br>{chance:.2f}", palette.chance)]
    if known and abs(float(ceiling[-1]) - chance) > APART:
        labels.append(end_name(float(ceiling[-1]), "ceiling", palette.ceiling))
    partings = [place + 0.5 for place, (one, other) in enumerate(pairwise(groups)) if one != other]
    layout = {
        "template": template(palette),
        "showlegend": False,
        "hovermode": "closest",
        "xaxis": {
            "title": {"text": "target"},
            "tickvals": shown,
            "ticktext": [safe(names[i]) for i in shown],
            "range": [-0.55, len(names) - 0.45],
            "showgrid": False,
        },
        "yaxis": {"title": {"text": "share right"}, "range": [-0.02, 1.06], "tickvals": [0, 0.25, 0.5, 0.75, 1]},
        "shapes": [
            level(chance, {"color": palette.chance, "width": 2, "dash": "dot"}),
            *(upright(x, {"color": palette.muted, "width": 1, "dash": "dash"}) for x in partings),
        ],
        "annotations": labels,
        "margin": {"t": 12, "b": 48, "r": 64},
    }
    columns = ceiling_columns(places, ceiling, palette) if known else []
    return go.Figure([*columns, between, median], layout)
