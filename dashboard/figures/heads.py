"""Heads among each other: two metrics against one another, and which heads are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.colour_bar import ROOM, name_ends, slim_bar
from dashboard.figures.token_axis import safe, token_axis
from dashboard.theme import LIGHT, Palette, colour_scale, template

MOST_LABELS = 24
"""More heads than this, and only the one in focus has its name beside it."""
MOST_NUMBERS = 8
"""More heads than this, and the map of likeness has no room for numbers."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "circle-open")
AROUND = ("top center", "bottom center", "middle right", "middle left", "top right", "bottom left")
"""Where labels stand, in turn, so that those of neighbours keep out of each other's way."""


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
    """What a head would get that looks at all it may see alike."""

    @property
    def range(self) -> tuple[float, float]:
        """A share has all of 0 to 1, anything else what it needs, and 0 is always there."""
        if self.unit == "share":
            return -0.04, 1.04
        low, high = (float(np.nan_to_num(bound).min(initial=0.0)) for bound in (self.low, -self.high))
        pad = 0.06 * max(0.1, -high - low)
        return low - pad, max(0.1, -high) + pad


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

    The last of `order` is the quiet one. Dotted lines: what a head would get that looks at all it may see alike. A
    point's customdata is the head's place in `labels`.
    """
    figure = go.Figure()
    known = np.isfinite(x.mean) & np.isfinite(y.mean)
    _reference(figure, x, y, palette)
    for place, name in enumerate(order):
        chosen = [i for i in range(len(labels)) if known[i] and names[i] == name]
        if not chosen:
            continue
        quiet = place == len(order) - 1
        colour = palette.muted if quiet else palette.categorical[place]
        figure.add_scatter(
            x=x.mean[chosen].astype(np.float32),
            y=y.mean[chosen].astype(np.float32),
            error_x=_bars(x, chosen, colour),
            error_y=_bars(y, chosen, colour),
            mode="markers+text",
            text=[safe(labels[i]) if len(labels) <= MOST_LABELS or i == focus else "" for i in chosen],
            textposition=[AROUND[i % len(AROUND)] for i in chosen],
            textfont={"size": 14, "color": palette.text},
            marker={"size": 11, "symbol": SYMBOLS[place % len(SYMBOLS)], "color": colour, "line": {"width": 2}},
            name=safe(name),
            customdata=chosen,  # a list: of a numpy array the browser makes a dictionary
            hovertext=[f"head {labels[i]}, {name}<br>{_said(x, i)}<br>{_said(y, i)}" for i in chosen],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    if focus is not None and known[focus]:
        figure.add_scatter(
            x=[float(x.mean[focus])],
            y=[float(y.mean[focus])],
            mode="markers",
            marker={"size": 22, "symbol": "circle-open", "color": palette.accent, "line": {"width": 2.5}},
            name="focus",
            showlegend=False,
            hoverinfo="skip",
        )
    figure.update_layout(
        template=template(palette),
        showlegend=True,
        legend={"entrywidth": 0, "font": {"size": 14}, "itemclick": False, "itemdoubleclick": False},
        hovermode="closest",
        xaxis={"title": {"text": _axis_title(x)}, "range": x.range, "nticks": 6},
        yaxis={"title": {"text": _axis_title(y)}, "range": y.range, "nticks": 6},
    )
    return figure


def likeness_heatmap(
    alike: np.ndarray, labels: Sequence[str], *, focus: int | None = None, palette: Palette = LIGHT
) -> go.Figure:
    """How alike heads are, float [head, head] from 0 to 1 on a fixed scale; nan (two kinds of attention) is grey.

    The row of the head in focus is framed.
    """
    n, names = len(labels), [safe(label) for label in labels]
    known = np.isfinite(alike)
    figure = go.Figure()
    figure.add_heatmap(
        z=alike.astype(np.float32),
        zmin=0,
        zmax=1,
        colorscale=colour_scale(palette.scale),
        colorbar=slim_bar(),
        hoverongaps=False,
        xgap=1 if n <= MOST_LABELS else 0,
        ygap=1 if n <= MOST_LABELS else 0,
        text=[
            [f"head {one} and head {other}: {alike[i, j]:.2f}" for j, other in enumerate(names)]
            for i, one in enumerate(names)
        ],
        texttemplate="%{z:.2f}" if n <= MOST_NUMBERS else "",
        hovertemplate="%{text}<extra></extra>",
        name="alike",
    )
    if not known.all():
        figure.add_heatmap(
            z=np.where(known, np.nan, 0).astype(np.float32),
            colorscale=[[0, palette.forbidden], [1, palette.forbidden]],
            showscale=False,
            hoverongaps=False,
            hovertemplate="not of one kind: their rows speak of different tokens<extra></extra>",
            name="incomparable",
        )
    if focus is not None:
        figure.add_shape(
            type="rect",
            x0=-0.5,
            x1=n - 0.5,
            y0=focus - 0.5,
            y1=focus + 0.5,
            line={"width": 2.5, "color": palette.chance},
        )
    figure.update_layout(
        template=template(palette),
        xaxis={**token_axis("head", labels, upright=False), "range": [-0.5, n - 0.5], "constrain": "domain"},
        yaxis={
            **token_axis("head", labels),
            "range": [n - 0.5, -0.5],
            "scaleanchor": "x",
            "constrain": "domain",
            "constraintoward": "top",
        },
        margin={"t": ROOM},
    )
    name_ends(figure, 0.0, 1.0, palette)
    return figure


def _reference(figure: go.Figure, x: Axis, y: Axis, palette: Palette) -> None:
    """Dotted lines at what looking evenly would give."""
    line = {"width": 1.5, "dash": "dot", "color": palette.chance}
    if x.even is not None:
        figure.add_vline(x=x.even, line=line, layer="below")
    if y.even is not None:
        figure.add_hline(y=y.even, line=line, layer="below")
    if x.even is None and y.even is None:
        return
    figure.add_annotation(
        text="dotted: looking at all alike",
        x=1,
        y=1,
        xref="paper",
        yref="paper",
        xanchor="right",
        yanchor="top",
        showarrow=False,
        font={"size": 13, "color": palette.chance},
    )


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
