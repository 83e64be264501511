"""The matrices of one attention, drawn to scale: every cell a number, every side a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dashboard.theme import LIGHT, Palette, colour_scale, template

LEAST, ABOVE, BESIDE = 2.6, 0.14, 0.06
"""Room between matrices: cells at least; above and beside, shares of the whole width, where cells are small."""


@dataclass(frozen=True)
class Matrix:
    """A matrix at its place: its lower edge and its left edge in cells; without values where it cannot be computed."""

    name: str
    left: float
    low: float
    sides: tuple[str, str]
    """What its height and its width count: "n_q", "d_k" …"""
    size: tuple[int, int]
    values: np.ndarray | None
    share: bool = False
    """Are its numbers shares from 0 to 1 and not of either sign?"""

    @property
    def right(self) -> float:
        return self.left + self.size[1]

    @property
    def top(self) -> float:
        return self.low + self.size[0]


def falk(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, pattern: np.ndarray | None, z: np.ndarray | None
) -> list[Matrix]:
    """Where the matrices stand so that each product stands in the corner of its factors (Falk's scheme).

    Q to the left of the pattern, Kᵀ above it; V above the output, which is to the right of the pattern.
    """
    (n_q, d_q), (n_k, d_k), (n_v, d_v) = query.shape, key.shape, value.shape
    wide = d_q + n_k + d_v
    beside, over = max(LEAST, BESIDE * wide), max(LEAST, ABOVE * wide)
    a_left, above = d_q + beside, n_q + over
    z_left = a_left + n_k + beside
    return [
        Matrix("Q", 0, 0, ("n_q", "d_q"), (n_q, d_q), query),
        Matrix("Kᵀ", a_left, above, ("d_k", "n_k"), (d_k, n_k), key.T),
        Matrix("pattern", a_left, 0, ("n_q", "n_k"), (n_q, n_k), pattern, share=True),
        Matrix("V", z_left, above, ("n_v", "d_v"), (n_v, d_v), value),
        Matrix("output", z_left, 0, ("n_q", "d_v"), (n_q, d_v), z),
    ]


def shapes_to_scale(matrices: Sequence[Matrix], wrong: Sequence[str] = (), *, palette: Palette = LIGHT) -> go.Figure:
    """Each matrix as its cells, its sides in the colours of what they count; `wrong` are sides that must agree and do
    not.

    Two sides of one colour are the same dimension. Dashed: what cannot be computed.
    """
    shown = [each for each in matrices if each.values is not None]
    limit = max(float(np.abs(each.values).max()) for each in shown if not each.share and each.values is not None)
    wide, high = max(each.right for each in matrices), max(each.top for each in matrices)
    layout = {
        "template": template(palette),
        "showlegend": False,
        "dragmode": False,
        "xaxis": {"visible": False, "range": [-0.8, wide + 0.4], "fixedrange": True},
        "yaxis": {
            "visible": False,
            "range": [-0.4, high + max(1.8, 0.09 * wide)],
            "scaleanchor": "x",
            "fixedrange": True,
        },
        "shapes": [line for each in matrices for line in _edges(each, wrong, palette)],
        "annotations": [word for each in matrices for word in _words(each, wrong, palette)],
        "margin": {"l": 4, "r": 4, "t": 4, "b": 4},
    }
    return go.Figure([_cells(each, limit, palette) for each in shown], layout)


def _cells(each: Matrix, limit: float, palette: Palette) -> dict[str, object]:
    assert each.values is not None
    rows, columns = each.size
    scale = (0.0, 1.0, palette.scale) if each.share else (-limit, limit, palette.signed)
    names = [[f"{each.name}, row {i + 1}, column {j + 1}" for j in range(columns)] for i in range(rows)]
    return {
        "type": "heatmap",
        "x": each.left + 0.5 + np.arange(columns),
        "y": each.top - 0.5 - np.arange(rows),
        "z": each.values.astype(np.float32),
        "zmin": scale[0],
        "zmax": scale[1],
        "colorscale": colour_scale(scale[2]),
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "text": names,
        "hovertemplate": "%{text}: %{z:.2f}<extra></extra>",
        "name": each.name,
    }


def side_colour(side: str, wrong: Sequence[str], palette: Palette) -> str:
    """One colour a dimension: those that must agree share theirs."""
    if side in wrong:
        return palette.wrong
    place = {"n_q": 0, "n_k": 2, "n_v": 2, "d_q": 1, "d_k": 1, "d_v": 3}[side]
    return palette.categorical[place]


def _edges(each: Matrix, wrong: Sequence[str], palette: Palette) -> list[dict[str, object]]:
    """The left and the upper side in the colours of what they count; a dashed box where nothing could be computed."""
    upright, level = each.sides
    lines: list[dict[str, object]] = [
        {"x0": each.left - 0.25, "x1": each.left - 0.25, "y0": each.low, "y1": each.top, "side": upright},
        {"x0": each.left, "x1": each.right, "y0": each.top + 0.25, "y1": each.top + 0.25, "side": level},
    ]
    found = []
    for line in lines:
        side = str(line.pop("side"))
        style = {"color": side_colour(side, wrong, palette), "width": 5, "dash": "dot" if side in wrong else "solid"}
        found.append({"type": "line", **line, "line": style})
    if each.values is None:
        box = {"x0": each.left, "x1": each.right, "y0": each.low, "y1": each.top}
        found.append({"type": "rect", **box, "line": {"color": palette.muted, "width": 2, "dash": "dash"}})
    return found


def _words(each: Matrix, wrong: Sequence[str], palette: Palette) -> list[dict[str, object]]:
    """The name and the shape above, in the colours of its sides; a cross where nothing could be computed."""
    numbers = [
        f'<span style="color:{side_colour(side, wrong, palette)}"><b>{count}</b></span>'
        for side, count in zip(each.sides, each.size, strict=True)
    ]
    middle = (each.left + each.right) / 2
    words: list[dict[str, object]] = [
        {
            "x": middle,
            "y": each.top + 0.25,
            "yanchor": "bottom",
            "yshift": 3,
            "text": f"<b>{each.name}</b>  {' × '.join(numbers)}",
            "showarrow": False,
            "font": {"size": 17, "color": palette.text},
        }
    ]
    if each.values is None:
        cross = {"text": "✕", "font": {"size": 26, "color": palette.wrong}, "showarrow": False}
        words.append({"x": middle, "y": (each.low + each.top) / 2, **cross})
    return words
