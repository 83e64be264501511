"""Reading a text: the loss by place, the loss on what is read twice, and attention by distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import ROOM, bar_ends, scaled
from dashboard.figures.kit.lines import end_name, frame, interval_bars, level
from dashboard.figures.kit.token_axis import safe, span, token_axis
from dashboard.theme import LIGHT, Palette, rgb, template

MOST_ROWS = 24
"""More heads than this, and the lines between the rows would be all there is to see."""


MOST_PLACES = 12
"""More names of places than this, and every other one is left out."""


@dataclass(frozen=True)
class Curve:
    """A mean at each place, and between which bounds it lies."""

    name: str
    mean: np.ndarray
    """float [place]"""
    low: np.ndarray
    high: np.ndarray


def likeliest_bars(
    names: Sequence[str], probability: np.ndarray, given: str, given_probability: float, *, palette: Palette = LIGHT
) -> go.Figure:
    """The likeliest tokens, float [token] from 0 to 1, and last the one that stood there unless it is among them."""
    there = [name == given for name in names]
    rows = [f"{name} ✓" if right else name for name, right in zip(names, there, strict=True)]
    values = [float(p) for p in probability]
    if not any(there):
        rows, values, there = [*rows, f"{given} ✓"], [*values, given_probability], [*there, True]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": np.array(values, dtype=np.float32),
        "y": list(range(len(rows))),
        "width": 0.7,
        "marker": {"color": [palette.right if right else palette.measured for right in there]},
        "text": [f"{value:.3f}" if value >= 0.001 else "< 0.001" for value in values],
        "textposition": "outside",
        "textfont": {"size": 14, "color": palette.text},
        "cliponaxis": False,
        "hovertext": [f"{safe(row)}: {value:.3g}" for row, value in zip(rows, values, strict=True)],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "probability",
    }
    axis = token_axis("", rows)
    layout = {
        "template": template(palette),
        "showlegend": False,
        "xaxis": {"title": {"text": "probability"}, "range": [0, 1.12], "tickvals": [0, 0.25, 0.5, 0.75, 1]},
        "yaxis": {**axis, "tickfont": {"size": 15}, "ticklabelstandoff": 6, "range": [len(rows) - 0.5, -0.5]},
        "margin": {"t": 6},
    }
    return go.Figure([bars], layout)


def perplexity_bars(perplexities: Mapping[str, float], *, palette: Palette = LIGHT) -> go.Figure:
    """The perplexity of several models by name, the last of which is the one that is looked at. Shorter is better."""
    names, values = list(perplexities), list(perplexities.values())
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": np.array(values, dtype=np.float32),
        "y": list(range(len(names))),
        "width": 0.7,
        "marker": {"color": [palette.muted] * (len(names) - 1) + [palette.measured]},
        "text": [f"{value:.1f}" for value in values],
        "textposition": "outside",
        "textfont": {"size": 15, "color": palette.text},
        "cliponaxis": False,
        "hovertext": [f"{safe(name)}: {value:.2f}" for name, value in perplexities.items()],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "perplexity",
    }
    layout = {
        "template": template(palette),
        "showlegend": False,
        "xaxis": {"title": {"text": "perplexity"}, "range": [0, 1.12 * max(values)]},
        "yaxis": {
            **token_axis("", names),
            "tickfont": {"size": 15},
            "ticklabelstandoff": 6,
            "range": [len(names) - 0.5, -0.5],
        },
        "margin": {"t": 6},
    }
    return go.Figure([bars], layout)


def loss_by_place_line(places: Sequence[str], loss: Curve, unread: float, *, palette: Palette = LIGHT) -> go.Figure:
    """Nats a token against the place in the window, places taken together, with intervals. Look for how far it falls.

    Dotted: what the same tokens cost by their counts alone.
    """
    crowded = len(places) > MOST_PLACES
    measured = {
        "type": "scatter",
        "x": list(range(len(places))),
        "y": loss.mean.astype(np.float32),
        "error_y": interval_bars(loss.mean, loss.low, loss.high, palette.measured, width=4, thickness=1.5),
        "mode": "lines+markers",
        "line": {"color": palette.measured, "width": 3},
        "marker": {"size": 9},
        "name": loss.name,
        "hovertext": [
            f"place {label}: {mean:.2f} nats ({low:.2f} to {high:.2f})"
            for label, mean, low, high in zip(places, loss.mean, loss.low, loss.high, strict=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    most = float(np.nanmax([unread, *loss.mean, *loss.high]))
    layout = {
        "template": template(palette),
        "showlegend": False,
        "xaxis": {
            "title": {"text": "position in the window"},
            "tickvals": list(range(0, len(places), 1 + crowded)),
            "ticktext": list(places[:: 1 + crowded]),
            "tickangle": 0,
            "range": [-0.4, len(places) - 0.6],
        },
        "yaxis": {"title": {"text": "nats a token"}, "range": [0, 1.08 * most]},
        "shapes": [level(unread, {"color": palette.chance, "width": 2, "dash": "dot"})],
        "annotations": [end_name(unread, "frequency<br>alone", palette.chance)],
        "margin": {"t": 8, "r": 64},
    }
    return go.Figure([measured], layout)


def _away(bins: Sequence[tuple[int, int]]) -> dict[str, object]:
    """The axis of distances: where each bin begins."""
    return {**token_axis("tokens away, from", [str(low) for low, _ in bins]), "tickangle": 0, "tickfont": {"size": 14}}


def repetition_lines(curves: Sequence[Curve], *, together: int = 1, palette: Palette = LIGHT) -> go.Figure:
    """Nats a token against the place in the block, one curve for each time it is read, with 95 % bands; so many places
    `together` are one value.

    Look for a gap between the first line and the second: that is what was copied.
    """
    traces = []
    for curve, colour, dash in zip(curves, (0, 1, 7), ("solid", "dash", "dot"), strict=False):
        x = np.arange(len(curve.mean)) * together + (together + 1) / 2
        line = palette.categorical[colour]
        r, g, b = rgb(line)
        band = {
            "type": "scatter",
            "x": np.concatenate([x, x[::-1]]),
            "y": np.concatenate([curve.high, curve.low[::-1]]).astype(np.float32),
            "fill": "toself",
            "fillcolor": f"rgba({r},{g},{b},0.18)",
            "line": {"width": 0},
            "mode": "lines",
            "hoverinfo": "skip",
            "showlegend": False,
            "name": f"{curve.name}, interval",
        }
        mean = {
            "type": "scatter",
            "x": x,
            "y": curve.mean.astype(np.float32),
            "mode": "lines",
            "line": {"color": line, "width": 3, "dash": dash},
            "name": curve.name,
            "hovertemplate": f"{safe(curve.name)}, place %{{x}}: %{{y:.2f}} nats<extra></extra>",
        }
        traces += [band, mean]
    top = float(np.nanmax([value for curve in curves for value in (*curve.mean, *curve.high)]))
    layout = {
        "template": template(palette),
        "showlegend": True,
        "legend": {"entrywidth": 0, "font": {"size": 14}},
        "hovermode": "closest",
        "xaxis": {
            "title": {"text": "position in the block"},
            "range": [0.5, together * len(curves[0].mean) + 0.5],
            "nticks": 8,
        },
        "yaxis": {"title": {"text": "nats a token"}, "range": [0, 1.05 * top]},
    }
    return go.Figure(traces, layout)


def distance_heatmap(
    share: np.ndarray,
    labels: Sequence[str],
    bins: Sequence[tuple[int, int]],
    *,
    focus: int | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Attention by distance, float [row, bin] from 0 to 1 on a fixed scale, a row a head; the focus is framed.

    Look for rows that are dark on the left: heads that look no further than that.
    """
    rows, spans = len(labels), [span(*each) for each in bins]
    gap = 1 if rows <= MOST_ROWS else 0
    cells = {
        "type": "heatmap",
        "z": share.astype(np.float32),
        **scaled(0, 1, palette.scale),
        "xgap": gap,
        "ygap": gap,
        "text": [[f"{safe(label)}, distance {each}" for each in spans] for label in labels],
        "hovertemplate": "%{text}: %{z:.3f} of its attention<extra></extra>",
        "name": "attention",
    }
    rim = {"width": 2.5, "color": palette.chance}
    layout = {
        "template": template(palette),
        "xaxis": {**_away(bins), "range": [-0.5, len(bins) - 0.5]},
        "yaxis": {**token_axis("head", labels), "ticklabelstandoff": 4, "range": [rows - 0.5, -0.5]},
        "shapes": [] if focus is None else [frame(-0.5, focus - 0.5, len(bins) - 0.5, focus + 0.5, rim)],
        "annotations": bar_ends(0.0, 1.0, palette),
        "margin": {"t": ROOM},
    }
    return go.Figure([cells], layout)


def distance_bars(
    own: np.ndarray, even: np.ndarray, bins: Sequence[tuple[int, int]], name: str, *, palette: Palette = LIGHT
) -> go.Figure:
    """One head's attention by distance, float [bin], beside an even head's. Look for bars above their mark."""
    spans, places = [span(*each) for each in bins], list(range(len(bins)))
    bars = {
        "type": "bar",
        "x": places,
        "y": own.astype(np.float32),
        "width": 0.66,
        "marker": {"color": palette.measured},
        "name": safe(name),
        "customdata": spans,
        "hovertemplate": f"{safe(name)}, %{{customdata}} away: %{{y:.3f}}<extra></extra>",
    }
    marks = {
        "type": "scatter",
        "x": places,
        "y": even.astype(np.float32),
        "mode": "lines+markers",
        "line": {"color": palette.chance, "width": 2, "dash": "dot"},
        "marker": {"size": 9, "symbol": "diamond", "color": palette.chance},
        "name": "looking evenly",
        "customdata": spans,
        "hovertemplate": "looking evenly, %{customdata} away: %{y:.3f}<extra></extra>",
    }
    layout = {
        "template": template(palette),
        "showlegend": True,
        "legend": {"entrywidth": 0, "font": {"size": 14}},
        "xaxis": {**_away(bins), "range": [-0.5, len(bins) - 0.5]},
        "yaxis": {"title": {"text": "share of attention"}, "range": [0, 1.04], "tickvals": [0, 0.25, 0.5, 0.75, 1]},
    }
    return go.Figure([bars, marks], layout)
