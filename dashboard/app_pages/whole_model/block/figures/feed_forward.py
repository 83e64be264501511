"""Hidden units: the ones that fire most at a token, and how often all of them fire."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from dashboard.theme import LIGHT, Palette, template

BINS = 20


def unit_bars(units: np.ndarray, hidden: np.ndarray, shares: np.ndarray, *, palette: Palette = LIGHT) -> go.Figure:
    """Some units, int [unit], the strongest first: how strongly each fires here, and how often it fires, float [unit].

    Left the activation, right the share of positions. Look for units that are strong here and fire seldom.
    """
    places = list(range(len(units)))
    both = {"type": "bar", "orientation": "h", "y": places, "text": [f"unit {unit}" for unit in units]}
    here = {
        **both,
        "x": hidden.astype(np.float32),
        "marker": {"color": palette.measured, "line": {"width": 0}},
        "textposition": "none",
        "hovertemplate": "%{text} here: %{x:.3f}<extra></extra>",
        "name": "here",
    }
    often = {
        **both,
        "x": shares.astype(np.float32),
        "xaxis": "x2",
        "marker": {"color": palette.categorical[1], "line": {"width": 0}},
        "textposition": "none",
        "hovertemplate": "%{text} fires at %{x:.1%} of positions<extra></extra>",
        "name": "often",
    }
    layout = {
        "template": template(palette),
        "showlegend": False,
        "bargap": 0.25,
        "xaxis": {"title": {"text": "activation here"}, "domain": [0, 0.56], "rangemode": "tozero", "nticks": 5},
        "xaxis2": {
            "title": {"text": "share of positions"},
            "domain": [0.62, 1],
            "anchor": "y",
            "range": [0, 1],
            "nticks": 4,
        },
        "yaxis": {
            "tickvals": places,
            "ticktext": [f"unit {unit}" for unit in units],
            "range": [len(units) - 0.5, -0.5],
            "showgrid": False,
        },
        "margin": {"t": 8, "r": 16},
    }
    return go.Figure([here, often], layout)


def firing_histogram(shares: np.ndarray, *, palette: Palette = LIGHT) -> go.Figure:
    """How many units fire how often: float [unit], the share of positions, in bins of 0.05; never is a bar of its own.

    A share on an edge belongs to the bin above it, and 1 to the last.
    """
    some = shares[shares > 0]
    counts, edges = np.histogram(some, bins=BINS, range=(0, 1))
    never = int((shares == 0).sum())
    traces = [
        {
            "type": "bar",
            "x": ((edges[1:] + edges[:-1]) / 2).astype(np.float32),
            "y": counts,
            "width": 0.9 / BINS,
            "marker": {"color": palette.measured, "line": {"width": 0}},
            "customdata": [f"{low:.2f} to {high:.2f}" for low, high in pairwise(edges)],
            "hovertemplate": "%{y} units fire at %{customdata} of positions<extra></extra>",
            "name": "units",
        },
        {
            "type": "bar",
            "x": [-0.75 / BINS],
            "y": [never],
            "width": 0.9 / BINS,
            "marker": {"color": palette.wrong, "line": {"width": 0}, "pattern": {"shape": "/"}},
            "hovertemplate": "%{y} units fired nowhere<extra></extra>",
            "text": [str(never)],
            "textposition": "outside",
            "cliponaxis": False,
            "textfont": {"size": 14},
            "name": "never",
        },
    ]
    layout = {
        "template": template(palette),
        "showlegend": False,
        "xaxis": {
            "title": {"text": "share of positions at which a unit fires"},
            "range": [-1.6 / BINS, 1.01],
            "tickvals": [-0.75 / BINS, 0.25, 0.5, 0.75, 1],
            "ticktext": ["never", "0.25", "0.5", "0.75", "1"],
            "showgrid": False,
        },
        "yaxis": {"title": {"text": "units"}, "rangemode": "tozero", "nticks": 5},
        "margin": {"t": 24, "r": 16},
    }
    return go.Figure(traces, layout)
