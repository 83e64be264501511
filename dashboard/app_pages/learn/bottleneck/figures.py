"""The bottleneck: how much of an answer is right, against its length and place by place, a model a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import level, level_name
from dashboard.theme import LIGHT, Palette, rgb, template

DASHES = ("dashdot", "solid", "dash")
SYMBOLS = ("diamond", "circle", "square")
COLOURS = (3, 0, 2)
"""Of the categorical palette: pink, blue and green, for one vector, attention and the transformer; chance is orange."""
LOW, HIGH = -0.04, 1.05


@dataclass(frozen=True)
class Line:
    """One model: a share at each x, with its interval."""

    name: str
    x: np.ndarray
    """int [point]"""
    share: np.ndarray
    """float [point], from 0 to 1, as are both ends of its interval."""
    low: np.ndarray
    high: np.ndarray
    place: int
    """Which of the three colours, dashes and marks it has: the same on both charts."""


def exact_by_length_curves(lines: Sequence[Line], *, chance: float, palette: Palette = LIGHT) -> go.Figure:
    """Share of whole answers right against the length; `chance` is that of one symbol, so chance^length for them all.

    Look for where a line leaves the top, and whether it ever does.
    """
    lengths = lines[0].x
    guess = {
        "x": lengths,
        "y": (chance**lengths).astype(np.float32),
        "mode": "lines",
        "line": {"color": palette.chance, "width": 2, "dash": "dot"},
        "name": "chance",
        "hoverinfo": "skip",
    }
    axis = {"title": {"text": "length of the sequence"}, "tick0": 0, "dtick": 4}
    layout = _layout(lengths, axis, "whole answers right", palette)
    return go.Figure([*_drawn(lines, "length", "of whole answers right", palette), guess], layout)


def right_by_place_curves(lines: Sequence[Line], *, chance: float, palette: Palette = LIGHT) -> go.Figure:
    """Share right at each place of the answers to questions of one length, and chance.

    Place 1 is said first, and was read last. Look for the end at which a line falls.
    """
    places = lines[0].x
    shown = [int(place) for place in places if place % 4 == 0 and place < places[-1] - 1]
    axis = {
        "title": {"text": "position in the answer (1 was read last)"},
        "tickvals": sorted({1, int(places[-1]), *shown}),
    }
    layout = _layout(places, axis, "right", palette) | {
        "shapes": [level(chance, {"color": palette.chance, "width": 2, "dash": "dot"})],
        "annotations": [level_name(chance, f"chance {chance:.2f}", palette.chance, palette, above=False)],
    }
    return go.Figure(_drawn(lines, "place", "right", palette), layout)


def _drawn(lines: Sequence[Line], axis: str, words: str, palette: Palette) -> list[dict[str, Any]]:
    """Each model as its interval's band, and a line with marks on it."""
    bands, curves = [], []
    for line in lines:
        colour = palette.categorical[COLOURS[line.place]]
        r, g, b = rgb(colour)
        shared = {"type": "scatter", "legendgroup": line.name}
        bands.append(
            shared
            | {
                "x": np.concatenate([line.x, line.x[::-1]]),
                "y": np.concatenate([line.high, line.low[::-1]]).astype(np.float32),
                "fill": "toself",
                "mode": "lines",
                "line": {"width": 0},
                "fillcolor": f"rgba({r},{g},{b},0.22)",
                "hoverinfo": "skip",
                "showlegend": False,
                "name": f"{line.name}, 95 % interval",
            }
        )
        numbers = zip(line.x, line.share, line.low, line.high, strict=True)
        curves.append(
            shared
            | {
                "x": line.x,
                "y": line.share.astype(np.float32),
                "mode": "lines+markers",
                "line": {"color": colour, "width": 3, "dash": DASHES[line.place]},
                "marker": {"color": colour, "size": 9, "symbol": SYMBOLS[line.place]},
                "hovertext": [
                    f"{line.name}, {axis} {x}: {share:.3f} {words} ({low:.3f} to {high:.3f})"
                    for x, share, low, high in numbers
                ],
                "hovertemplate": "%{hovertext}<extra></extra>",
                "cliponaxis": False,
                "name": line.name,
            }
        )
    return [*bands, *curves]


def _layout(x: np.ndarray, axis: dict[str, Any], title: str, palette: Palette) -> dict[str, Any]:
    """What both charts share: one scale from 0 to 1, and the names above."""
    return {
        "template": template(palette),
        "hovermode": "closest",
        "xaxis": {"range": [x[0] - 0.6, x[-1] + 0.6], **axis},
        "yaxis": {"title": {"text": title}, "range": [LOW, HIGH], "tickvals": [0, 0.25, 0.5, 0.75, 1]},
        "margin": {"t": 34, "b": 48, "r": 8},
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"size": 15},
            "itemwidth": 44,
        },
    }
