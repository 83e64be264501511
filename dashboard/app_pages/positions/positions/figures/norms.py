"""How long vectors are that are added to each other: two strips of points on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, template

MOST_TICKS = 13
"""Names under one strip, so that they do not touch in a narrow window."""


@dataclass(frozen=True)
class Strip:
    """Norms, float [name], under one title; `other` are the same vectors with the scale switched over."""

    title: str
    names: Sequence[str]
    norms: np.ndarray
    other: np.ndarray | None = None


def norm_strips(strips: Sequence[Strip], *, palette: Palette = LIGHT) -> go.Figure:
    """One strip of points beside the other, each with its mean as a dashed line; hollow: with the scale switched."""
    top = max(float(norms.max()) for strip in strips for norms in (strip.norms, strip.other) if norms is not None)
    width = (1 - 0.04 * (len(strips) - 1)) / len(strips)
    traces: list[dict[str, object]] = []
    axes: dict[str, object] = {}
    titles = []
    for number, strip in enumerate(strips):
        suffix = "" if number == 0 else str(number + 1)
        start = number * (width + 0.04)
        colour = palette.categorical[number]
        if strip.other is not None:
            traces.append(_points(strip, strip.other, suffix, palette.before, hollow=True))
        traces.append(_points(strip, strip.norms, suffix, colour))
        traces.append(_mean(strip, suffix, colour))
        step = -(-len(strip.names) // MOST_TICKS)
        places = list(range(0, len(strip.names), step))
        axes[f"xaxis{suffix}"] = {
            "domain": [start, start + width],
            "range": [-0.7, len(strip.names) - 0.3],
            "showgrid": False,
            "tickmode": "array",
            "tickvals": places,
            "ticktext": [safe(strip.names[place]) for place in places],
            "tickangle": 0,
        }
        titles.append(_title(strip, start, colour if not palette.dark else palette.text))
    layout = {
        "template": template(palette),
        "hovermode": "closest",
        "yaxis": {"title": {"text": "length"}, "range": [0, 1.1 * (top or 1.0)], "nticks": 6},
        "annotations": titles,
        "margin": {"t": 30},
        **axes,
    }
    return go.Figure(traces, layout)


def _points(strip: Strip, norms: np.ndarray, suffix: str, colour: str, *, hollow: bool = False) -> dict[str, object]:
    said = f"{strip.title}, scale switched over" if hollow else strip.title
    return {
        "type": "scatter",
        "xaxis": f"x{suffix}",
        "x": list(range(len(norms))),
        "y": norms.astype(np.float32),
        "mode": "markers",
        "marker": {
            "size": 9,
            "symbol": "circle-open" if hollow else "diamond" if suffix else "circle",
            "color": colour,
            "line": {"width": 2, "color": colour},
        },
        "cliponaxis": False,
        "name": safe(said),
        "showlegend": False,
        "hovertext": [safe(f"{said}, {name}: {norm:.3f}") for name, norm in zip(strip.names, norms, strict=True)],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _mean(strip: Strip, suffix: str, colour: str) -> dict[str, object]:
    mean = float(strip.norms.mean())
    return {
        "type": "scatter",
        "xaxis": f"x{suffix}",
        "x": [-0.7, len(strip.names) - 0.3],
        "y": [mean, mean],
        "mode": "lines",
        "line": {"width": 2, "dash": "dash", "color": colour},
        "hoverinfo": "skip",
        "showlegend": False,
        "name": f"{safe(strip.title)}, mean",
    }


def _title(strip: Strip, start: float, colour: str) -> dict[str, object]:
    return {
        "x": start,
        "xref": "paper",
        "xanchor": "left",
        "y": 1.0,
        "yref": "paper",
        "yanchor": "bottom",
        "text": f"{safe(strip.title)}: {strip.norms.mean():.2f} on average",
        "showarrow": False,
        "font": {"size": 15, "color": colour},
    }
