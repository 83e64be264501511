"""Heads among each other: two metrics against one another, and which heads are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import ROOM, bar_ends, flat, scaled
from dashboard.figures.kit.labels import label_sides
from dashboard.figures.kit.lines import frame
from dashboard.figures.kit.token_axis import safe, token_axis
from dashboard.theme import LIGHT, Palette, share_colours, template

MOST_LABELS = 24
"""More heads than this, and only the one in focus has its name beside it."""
MOST_NUMBERS = 8
"""More heads than this, and the map of likeness has no room for numbers."""
LEAST_FOR_NUMBERS = 340
"""Pixels of the narrowest figure in which they have."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "circle-open")


@dataclass(frozen=True)
class Axis:
    """One metric of every head, with its interval."""

    title: str
    unit: str
    mean: np.ndarray
    """float [head], nan where it means nothing."""
    low: np.ndarray
    high: np.ndarray
    even: float | None = None
    """What a head would get that looks evenly at all it may see."""

    @property
    def places(self) -> np.ndarray:
        """Where the means stand on the axis, from 0 to 1."""
        low, high = self.range
        return (self.mean - low) / (high - low)

    @property
    def range(self) -> tuple[float, float]:
        """A share has all of 0 to 1, anything else what it needs, and 0 is always there."""
        if self.unit == "share":
            return -0.04, 1.04
        seen = [*self.low[np.isfinite(self.low)], *self.high[np.isfinite(self.high)], self.even or 0.0, 0.0, 0.1]
        low, high = float(min(seen)), float(max(seen))
        return low - 0.06 * (high - low), high + 0.06 * (high - low)


def metrics_scatter(
    x: Axis,
    y: Axis,
    labels: Sequence[str],
    names: Sequence[str],
    order: Sequence[str],
    *,
    focus: int | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Each head as a point with the 95 % intervals of two metrics; `names` decide colour and mark, as in `order`.

    The last of `order` is the quiet one. Dotted: what a head would get that looks evenly at all it may see. A
    point's customdata is the head's place in `labels`.
    """
    known = np.isfinite(x.mean) & np.isfinite(y.mean)
    crowd = len(labels) > MOST_LABELS
    shown = [label if known[i] and (not crowd or i == focus) else "" for i, label in enumerate(labels)]
    sides = label_sides(x.places, y.places, shown, first=focus)
    traces = _evenly(x, y, palette)
    for place, name in enumerate(order):
        chosen = [i for i in range(len(labels)) if known[i] and names[i] == name]
        if not chosen:
            continue
        quiet = place == len(order) - 1
        colour = palette.muted if quiet else palette.categorical[place]
        points = {
            "type": "scatter",
            "x": x.mean[chosen].astype(np.float32),
            "y": y.mean[chosen].astype(np.float32),
            "error_x": _bars(x, chosen, colour),
            "error_y": _bars(y, chosen, colour),
            "mode": "markers+text",
            "text": [safe(labels[i]) if sides[i] else "" for i in chosen],
            "textposition": [sides[i] or "top center" for i in chosen],
            "textfont": {"size": 14, "color": palette.text},
            "marker": {
                "size": 11,
                "symbol": SYMBOLS[place % len(SYMBOLS)],
                "color": colour,
                "line": {"color": colour, "width": 2},
            },
            "cliponaxis": False,
            "name": safe(name),
            "customdata": chosen,  # a list: of a numpy array the browser makes a dictionary
            "hovertext": [f"head {labels[i]}, {name}<br>{_said(x, i)}<br>{_said(y, i)}" for i in chosen],
            "hovertemplate": "%{hovertext}<extra></extra>",
        }
        traces.append(points)
    if focus is not None and known[focus]:
        ring = {
            "type": "scatter",
            "x": [float(x.mean[focus])],
            "y": [float(y.mean[focus])],
            "mode": "markers",
            "marker": {"size": 20, "symbol": "circle-open", "color": palette.accent, "line": {"width": 2.5}},
            "name": "focus",
            "showlegend": False,
            "hoverinfo": "skip",
        }
        traces.append(ring)
    layout = {
        "template": template(palette),
        "showlegend": True,
        "legend": {"entrywidth": 0, "font": {"size": 14}, "itemclick": False, "itemdoubleclick": False},
        "hovermode": "closest",
        "xaxis": {"title": {"text": _axis_title(x)}, "range": x.range, "nticks": 6},
        "yaxis": {"title": {"text": _axis_title(y)}, "range": y.range, "nticks": 6},
    }
    return go.Figure(traces, layout)


def likeness_heatmap(
    alike: np.ndarray, labels: Sequence[str], *, focus: int | None = None, palette: Palette = LIGHT
) -> go.Figure:
    """How alike heads are, float [head, head] from 0 to 1 on a fixed scale; nan (two kinds of attention) is grey.

    The row of the head in focus is framed.
    """
    n, names = len(labels), [safe(label) for label in labels]
    known = np.isfinite(alike)
    traces: list[dict[str, object]] = [
        {
            "type": "heatmap",
            "z": alike.astype(np.float32),
            **scaled(0, 1, palette.scale),
            "hoverongaps": False,
            "xgap": 1 if n <= MOST_LABELS else 0,
            "ygap": 1 if n <= MOST_LABELS else 0,
            "meta": {"pairs": names},  # the browser writes them out: of 144 heads there are 20,736
            "hovertemplate": "heads %{text}: %{z:.2f}<extra></extra>",
            "name": "alike",
        }
    ]
    if not known.all():
        incomparable = {
            "type": "heatmap",
            "z": np.where(known, np.nan, 0).astype(np.float32),
            **flat(palette.forbidden),
            "hoverongaps": False,
            "hovertemplate": "not of one kind: their rows speak of different tokens<extra></extra>",
            "name": "incomparable",
        }
        traces.append(incomparable)
    if n <= MOST_NUMBERS:
        cells = [(int(i), int(j)) for i, j in np.argwhere(known)]
        numbers = {
            "type": "scatter",
            "x": [j for _, j in cells],
            "y": [i for i, _ in cells],
            "mode": "text",
            "text": [f"{alike[cell]:.2f}" for cell in cells],
            "textfont": {"size": 14, "color": [share_colours(float(alike[cell]), palette)[1] for cell in cells]},
            "hoverinfo": "skip",
            "showlegend": False,
            "meta": {"least_width": LEAST_FOR_NUMBERS},
            "name": "numbers",
        }
        traces.append(numbers)
    rim: dict[str, object] = {"width": 2.5, "color": palette.chance}
    layout = {
        "template": template(palette),
        "xaxis": {
            **token_axis("head", labels, upright=False),
            **({"tickangle": 0} if n <= MOST_NUMBERS and max(map(len, labels)) <= 4 else {}),
            "range": [-0.5, n - 0.5],
            "constrain": "domain",
        },
        "yaxis": {
            **token_axis("head", labels),
            "ticklabelstandoff": 4,
            "range": [n - 0.5, -0.5],
            "scaleanchor": "x",
            "constrain": "domain",
            "constraintoward": "top",
        },
        "shapes": [] if focus is None else [frame(-0.5, focus - 0.5, n - 0.5, focus + 0.5, rim)],
        "annotations": bar_ends(0.0, 1.0, palette),
        "margin": {"t": ROOM},
    }
    return go.Figure(traces, layout)


def _evenly(x: Axis, y: Axis, palette: Palette) -> list[dict[str, object]]:
    """Dotted lines at what looking evenly would give, named once."""
    upright = [((x.even, x.even), y.range)] if x.even is not None else []
    level = [(x.range, (y.even, y.even))] if y.even is not None else []
    return [
        {
            "type": "scatter",
            "x": list(across),
            "y": list(up),
            "mode": "lines",
            "line": {"width": 1.5, "dash": "dot", "color": palette.chance},
            "name": "looking evenly",
            "legendgroup": "even",
            "showlegend": i == 0,
            "hoverinfo": "skip",
        }
        for i, (across, up) in enumerate([*upright, *level])
    ]


def _bars(axis: Axis, chosen: Sequence[int], colour: str) -> dict[str, object]:
    return {
        "type": "data",
        "symmetric": False,
        "array": (axis.high - axis.mean)[chosen].astype(np.float32),
        "arrayminus": (axis.mean - axis.low)[chosen].astype(np.float32),
        "color": colour,
        "thickness": 1.5,
        "width": 3,
    }


def _said(axis: Axis, head: int) -> str:
    """ "entropy 1.40 bits (1.39 to 1.42)"."""
    return f"{axis.title} {axis.mean[head]:.3f} {axis.unit} ({axis.low[head]:.3f} to {axis.high[head]:.3f})"


def _axis_title(axis: Axis) -> str:
    return safe(f"{axis.title} ({axis.unit})")
