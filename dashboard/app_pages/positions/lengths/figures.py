"""What positional encodings buy: one line an encoding, over lengths, over steps, and place by place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, template

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "dash", "dot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "hexagon")
COLOURS = (0, 1, 2, 3, 7, 4, 5, 6)
"""Of the categorical palette; the fifth is grey, for the encoding that is none. After eight they begin again, and each
then has the dash of the next one."""
MOST_MARKS = 30
"""More points than this, and only the line is drawn, with a mark at its end."""
MOST_SEQUENTIAL = 40
FEW_SEEDS = 8
"""More than these, and their thin lines are paler, so that the mean stays the strongest."""
LOW, HIGH = -0.04, 1.06


@dataclass(frozen=True)
class Line:
    """One encoding: a value at each x, for each seed; nan where there is none."""

    name: str
    x: np.ndarray
    """[point]"""
    values: np.ndarray
    """float [seed point], from 0 to 1."""
    place: int
    """Which of the colours, dashes and marks it has: the same on every chart."""
    ends: str = ""
    """Why it goes no further, if it does not."""

    @property
    def mean(self) -> np.ndarray:
        """Over the seeds, float [point]."""
        return self.values.mean(axis=0)


def exact_match_curves(lines: Sequence[Line], *, trained: int, chance: float, palette: Palette = LIGHT) -> go.Figure:
    """Share of whole answers right against the length; `chance` is that of one symbol, so chance^length for them all.

    Thick: the mean over seeds; thin: each seed. Ground: the lengths that were trained on. Look for how far past its
    edge a line stays up.
    """
    lengths = np.arange(1, 1 + max((int(line.x[-1]) for line in lines), default=trained))
    guess = {
        "x": lengths,
        "y": (chance**lengths).astype(np.float32),
        "mode": "lines",
        "line": {"color": palette.chance, "width": 2, "dash": "dot"},
        "name": "chance",
        "hoverinfo": "skip",
    }
    traces = [go.Scatter(guess), *_drawn(lines, "length", "of whole answers right", palette)]
    ends = [_end(line, palette) for line in lines if line.ends and np.isfinite(line.mean).any()]
    return go.Figure(
        traces,
        {
            **_layout(palette),
            "xaxis": {
                "title": {"text": "length of the sequence"},
                "range": [0.4, lengths[-1] + 0.6],
                "tick0": 0,
                "dtick": 2 if len(lengths) <= MOST_SEQUENTIAL else None,
            },
            "shapes": [_ground(0.4, trained + 0.5, "y domain", palette)],
            "yaxis": _shares() | {"range": [LOW, 1.16]},
            "annotations": [_said(0.55, 1.15, f"trained on 1 to {trained}", palette.muted), *ends],
        },
    )


def race_curves(lines: Sequence[Line], *, chance: float, last: int, palette: Palette = LIGHT) -> go.Figure:
    """Accuracy of the second half against the step, to the step `last`. Look for who never leaves chance far behind."""
    return go.Figure(
        _drawn(lines, "step", "of the second half right", palette),
        {
            **_layout(palette),
            "xaxis": {"title": {"text": "step"}, "range": [0, last * 1.02]},
            "shapes": [_level(chance, palette)],
            "annotations": [_said(last, chance, f"chance: {chance:.2f}", palette.chance, "right", "bottom")],
        },
    )


def places_panels(
    lines: Sequence[Line], *, trained: int, chance: float, palette: Palette = LIGHT, gap: float = 0.02
) -> go.Figure:
    """Accuracy at each place of the answer, a small panel for each encoding, side by side on one scale.

    Ground: the places that training has reached, 1 to `trained`; 0 where there are none.
    """
    wide = (1 + gap) / max(1, len(lines))
    traces: list[go.Scatter] = []
    axes: dict[str, Any] = {}
    shapes, words = [], []
    for number, line in enumerate(lines):
        index = "" if number == 0 else str(number + 1)
        traces += _drawn([line], "place", "right", palette, index)
        left, count = number * wide, len(line.x)
        axes[f"xaxis{index}"] = {
            "domain": [left, min(1.0, left + wide - gap)],
            "anchor": f"y{index}",
            "range": [0.5, count + 0.5],
            "tickvals": sorted({1, count, *range(4, count - 1, 4)}),
        }
        axes[f"yaxis{index}"] = _shares() | {"anchor": f"x{index}", "showticklabels": number == 0}
        if number:
            axes[f"yaxis{index}"] |= {"title": None, "matches": "y"}
        if trained:
            shapes.append(_ground(0.5, min(trained, count) + 0.5, f"y{index} domain", palette, f"x{index}"))
        shapes.append(_level(chance, palette, f"x{index} domain", f"y{index}"))
        above = {"xref": f"x{index} domain", "yref": f"y{index} domain"}
        words.append(_said(0.5, 1.0, f"<b>{safe(line.name)}</b>", palette.text, "center", "bottom") | above)
        if line.ends:
            words.append(
                _said(0.5, 0.5, safe(line.ends).replace(" for ", "<br>for "), palette.muted, "center", "middle") | above
            )
    layout = _layout(palette) | axes | {"shapes": shapes, "annotations": words, "showlegend": False}
    return go.Figure(traces, layout | {"margin": {"t": 28, "b": 48, "r": 8}})


def _dash(place: int) -> str:
    """The dash of a line: one further on in each round of the colours."""
    return DASHES[(place + place // len(COLOURS)) % len(DASHES)]


def _drawn(lines: Sequence[Line], axis: str, words: str, palette: Palette, index: str = "") -> list[go.Scatter]:
    """Each seed as a thin line, the mean as a thick one with marks."""
    made = []
    for line in lines:
        colour = palette.categorical[COLOURS[line.place % len(COLOURS)]]
        anchors = {"xaxis": f"x{index}", "yaxis": f"y{index}"}
        if len(line.values) > 1:
            each = np.append(line.values, np.full((len(line.values), 1), np.nan), axis=1)  # a gap after each seed
            thin = {
                "x": np.tile(np.append(line.x, line.x[-1:]), len(each)),
                "y": each.ravel().astype(np.float32),
                "mode": "lines",
                "line": {"color": colour, "width": 1},
                "opacity": 0.55 if len(each) <= FEW_SEEDS else 0.3,
                "hoverinfo": "skip",
                "showlegend": False,
                "legendgroup": line.name,
                "name": f"{line.name}, each seed",
            }
            made.append(go.Scatter(thin, **anchors))
        few = len(line.x) <= MOST_MARKS
        sizes = [9 if few else 0] * (len(line.x) - 1) + [9 if few else 12]
        hover = [
            f"{safe(line.name)}, {axis} {x:g}: " + ("not measured" if np.isnan(y) else f"{y:.3f} {words}")
            for x, y in zip(line.x, line.mean, strict=True)
        ]
        thick = {
            "x": line.x,
            "y": line.mean.astype(np.float32),
            "mode": "lines+markers",
            "line": {"color": colour, "width": 3, "dash": _dash(line.place)},
            "marker": {"color": colour, "size": sizes, "symbol": SYMBOLS[line.place % len(SYMBOLS)], "opacity": 1},
            "hovertext": hover,
            "hovertemplate": "%{hovertext}<extra></extra>",
            "legendgroup": line.name,
            "cliponaxis": False,
            "name": line.name,
        }
        made.append(go.Scatter(thick, **anchors))
    return made


def _layout(palette: Palette) -> dict[str, Any]:
    """What the charts share: one scale from 0 to 1, and the names on the right."""
    return {
        "template": template(palette),
        "hovermode": "closest",
        "yaxis": _shares(),
        "margin": {"t": 8, "b": 48, "r": 8},
        "legend": {
            "orientation": "v",
            "x": 1.01,
            "xanchor": "left",
            "y": 1,
            "yanchor": "top",
            "font": {"size": 15},
            "itemwidth": 44,
        },
    }


def _shares() -> dict[str, Any]:
    """The vertical axis."""
    return {"title": {"text": "share right"}, "range": [LOW, HIGH], "tickvals": [0, 0.25, 0.5, 0.75, 1]}


def _ground(left: float, right: float, yref: str, palette: Palette, xref: str = "x") -> dict[str, Any]:
    """What was trained on, as a ground behind the lines."""
    return {
        "type": "rect",
        "x0": left,
        "x1": right,
        "xref": xref,
        "y0": 0,
        "y1": 1,
        "yref": yref,
        "fillcolor": palette.surface,
        "line": {"width": 0},
        "layer": "below",
    }


def _level(height: float, palette: Palette, xref: str = "x domain", yref: str = "y") -> dict[str, Any]:
    """A level to read the lines against."""
    line = {"color": palette.chance, "width": 2, "dash": "dot"}
    return {"type": "line", "x0": 0, "x1": 1, "xref": xref, "y0": height, "y1": height, "yref": yref, "line": line}


def _end(line: Line, palette: Palette) -> dict[str, Any]:
    """Why a line goes no further, at its end."""
    last = int(np.flatnonzero(np.isfinite(line.mean))[-1])
    colour = palette.categorical[COLOURS[line.place % len(COLOURS)]]
    words = _said(float(line.x[last]), float(line.mean[last]), f"{safe(line.name)}: {safe(line.ends)}", palette.text)
    return words | {"showarrow": True, "ax": 28, "ay": 0, "arrowcolor": colour, "arrowhead": 0, "yanchor": "middle"}


def _said(x: float, y: float, text: str, colour: str, xanchor: str = "left", yanchor: str = "top") -> dict[str, Any]:
    """Words in a chart."""
    font = {"size": 14, "color": colour}
    return {"x": x, "y": y, "text": text, "showarrow": False, "xanchor": xanchor, "yanchor": yanchor, "font": font}
