"""A query among its keys, a context vector among its values, and what is said of it: arrows and points in a plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.labels import label_sides
from dashboard.figures.kit.notation import lowered
from dashboard.theme import LIGHT, Palette, template

SMALL = 260
"""About how many pixels a plane measures from side to side."""
Traces = list[dict[str, Any]]


def angle_plane(
    query: np.ndarray, keys: np.ndarray, angles: Sequence[float | None], *, palette: Palette = LIGHT
) -> go.Figure:
    """The query, float [2], and each key, float [key, 2], as arrows from the origin; arcs are the angles in degrees.

    `angles` are signed, from the query to the key, anticlockwise; None where there is none. Dotted: length 1.
    """
    limit = 1.25 * max(1.0, float(np.abs(np.vstack([keys, query])).max()))
    hover = [f"q: length {np.linalg.norm(query):.3f}"] + [
        lowered(f"k_{i + 1}: length {np.linalg.norm(key):.3f}")
        + ("" if angle is None else f", {abs(angle):.1f}° from q")
        for i, (key, angle) in enumerate(zip(keys, angles, strict=True))
    ]
    tips = np.vstack([query, keys])
    colours = [palette.categorical[0]] + [palette.categorical[1]] * len(keys)
    marks = {
        "type": "scatter",
        "x": tips[:, 0].tolist(),
        "y": tips[:, 1].tolist(),
        "mode": "markers",
        "marker": {"size": 9, "color": colours},
        "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "tips",
    }
    traces = [*_arcs(query, angles, limit, palette), marks]
    arrows = [_arrow(tip, colour, 2.5) for tip, colour in zip(tips, colours, strict=True)]
    arrows[0]["arrowwidth"] = 4
    names = _outside(tips, ["q", *(f"k_{i + 1}" for i in range(len(keys)))], limit)
    circle = {"type": "circle", "x0": -1, "x1": 1, "y0": -1, "y1": 1, "layer": "below"}
    shapes = [{**circle, "line": {"color": palette.muted, "width": 1.5, "dash": "dot"}}]
    layout = _plane(-limit, limit, -limit, limit, palette)
    return go.Figure(traces, layout | {"annotations": arrows + names, "shapes": shapes})


def values_plane(values: np.ndarray, shares: np.ndarray, context: np.ndarray, *, palette: Palette = LIGHT) -> go.Figure:
    """Each value, float [key, 2], as a point as large as its share; the context vector among them, in their hull."""
    middle = (values.max(axis=0) + values.min(axis=0)) / 2
    half = 0.72 * max(0.1, float(np.ptp(values, axis=0).max()))
    (left, low), (right, high) = middle - half, middle + half
    edge = values[hull(values)]
    edge = np.vstack([edge, edge[:1]])
    around = _line("hull", edge, {"color": palette.muted, "width": 1.5, "dash": "dot"})
    around |= {"fill": "toself", "fillcolor": palette.surface}
    names = [*(f"v_{i + 1}" for i in range(len(values))), "c"]
    hover = [
        lowered(f"v_{i + 1}: ({v[0]:.3f}, {v[1]:.3f}), share {s:.3f}")
        for i, (v, s) in enumerate(zip(values, shares, strict=True))
    ]
    hover.append(f"context: ({context[0]:.3f}, {context[1]:.3f})")
    sizes = [*(8 + 26 * np.sqrt(shares)).tolist(), 16]
    marker = {
        "size": sizes,
        "color": [palette.categorical[2]] * len(values) + [palette.accent],
        "symbol": ["circle"] * len(values) + ["diamond"],
        "line": {"color": palette.background, "width": 1.5},
        "opacity": [0.8] * len(values) + [1.0],
    }
    points = np.vstack([values, context])
    traces = [around, _points("values", points, names, hover, (left, right, low, high), marker)]
    return go.Figure(traces, _plane(left, right, low, high, palette))


def said_plane(given: np.ndarray, true: np.ndarray, said: np.ndarray, *, palette: Palette = LIGHT) -> go.Figure:
    """The given corners, float [key, 2], numbered along their way; the corner that is right, and what is said."""
    limit = 1.45 * max(1.0, float(np.abs(np.vstack([given, true, said])).max()))
    points = np.vstack([said, true, given])
    numbers = [str(i + 1) for i in range(len(given))]
    hover = [f"{name}: ({p[0]:.3f}, {p[1]:.3f})" for name, p in zip(["said", "right", *numbers], points, strict=True)]
    marker = {
        "size": [15, 17] + [9] * len(given),
        "symbol": ["x", "circle-open"] + ["circle"] * len(given),
        "color": [palette.accent, palette.right] + [palette.muted] * len(given),
        "line": {"width": [0, 3] + [0] * len(given)},
    }
    traces = [
        _line("walk", given, {"width": 1.5, "color": palette.muted}),
        _line("missed", np.vstack([said, true]), {"width": 2, "color": palette.wrong, "dash": "dot"}),
        _points("corners", points, ["said", "right", *numbers], hover, (-limit, limit, -limit, limit), marker),
    ]
    return go.Figure(traces, _plane(-limit, limit, -limit, limit, palette))


def hull(points: np.ndarray) -> list[int]:
    """Which points, float [point, 2], are the corners of their convex hull, anticlockwise (Andrew, 1979)."""
    order = np.lexsort((points[:, 1], points[:, 0])).tolist()

    def half(way: list[int]) -> list[int]:
        found: list[int] = []
        for i in way:
            while len(found) > 1 and _turns(points[found[-2]], points[found[-1]], points[i]) <= 0:
                found.pop()
            found.append(i)
        return found[:-1]

    return half(order) + half(order[::-1])


def _turns(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Above 0 where the way from a over b to c turns left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


# --- parts


def _plane(left: float, right: float, low: float, high: float, palette: Palette) -> dict[str, Any]:
    """The layout of a plane with axes of one scale, the origin marked."""
    axis = {"zeroline": True, "zerolinecolor": palette.grid, "zerolinewidth": 2, "fixedrange": True, "nticks": 6}
    return {
        "template": template(palette),
        "showlegend": False,
        "hovermode": "closest",
        "xaxis": {**axis, "range": [left, right], "constrain": "domain"},
        "yaxis": {**axis, "range": [low, high], "scaleanchor": "x", "constrain": "domain"},
        "shapes": [],
    }


def _points(
    name: str,
    points: np.ndarray,
    names: Sequence[str],
    hover: Sequence[str],
    bounds: tuple[float, float, float, float],
    marker: dict[str, Any],
) -> dict[str, Any]:
    """A trace: marks with their names beside them, where there is room."""
    left, right, low, high = bounds
    across, up = (points[:, 0] - left) / (right - left), (points[:, 1] - low) / (high - low)
    sides = label_sides(across, up, names, first=0)
    return {
        "type": "scatter",
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "mode": "markers+text",
        "text": [lowered(text) if side else "" for text, side in zip(names, sides, strict=True)],
        "textposition": [side or "top center" for side in sides],
        "textfont": {"size": 15},
        "marker": marker,
        "hovertext": list(hover),
        "hovertemplate": "%{hovertext}<extra></extra>",
        "cliponaxis": False,
        "name": name,
    }


def _line(name: str, points: np.ndarray, look: dict[str, Any]) -> dict[str, Any]:
    """A trace: from point to point."""
    return {
        "type": "scatter",
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "mode": "lines",
        "line": look,
        "hoverinfo": "skip",
        "name": name,
    }


def _arcs(query: np.ndarray, angles: Sequence[float | None], limit: float, palette: Palette) -> Traces:
    """A trace: from the direction of the query to that of each key, each arc a little further out."""
    x: list[float | None] = []
    y: list[float | None] = []
    start = float(np.arctan2(query[1], query[0]))
    for i, angle in enumerate(angles):
        if angle is None:
            continue
        way = start + np.radians(angle) * np.linspace(0, 1, 40)
        radius = limit * (0.16 + 0.05 * i)
        x += [*(radius * np.cos(way)).tolist(), None]
        y += [*(radius * np.sin(way)).tolist(), None]
    line = {"width": 1.5, "color": palette.muted}
    return [{"type": "scatter", "x": x, "y": y, "mode": "lines", "line": line, "hoverinfo": "skip", "name": "angles"}]


def _outside(tips: np.ndarray, names: Sequence[str], limit: float) -> list[dict[str, Any]]:
    """Annotations: a name beyond each tip, seen from the origin; one that would cover another goes further out."""
    taken: list[np.ndarray] = []
    found = []
    for tip, name in zip(tips, names, strict=True):
        length = float(np.linalg.norm(tip))
        way = tip / length if length else np.array([0.0, 1.0])
        steps = (tip / limit * SMALL / 2 + way * out for out in range(16, 100, 6))
        place = next(at for at in steps if all(np.linalg.norm(at - other) > 20 for other in taken))
        taken.append(place)
        shift = place - tip / limit * SMALL / 2
        found.append(
            {
                "x": float(tip[0]),
                "y": float(tip[1]),
                "xshift": float(shift[0]),
                "yshift": float(shift[1]),
                "text": f"<b>{lowered(name)}</b>",
                "showarrow": False,
                "font": {"size": 16},
            }
        )
    return found


def _arrow(tip: np.ndarray, colour: str, width: float) -> dict[str, Any]:
    """An annotation: an arrow from the origin."""
    return {
        "x": float(tip[0]),
        "y": float(tip[1]),
        "ax": 0,
        "ay": 0,
        "axref": "x",
        "ayref": "y",
        "showarrow": True,
        "arrowhead": 2,
        "arrowwidth": width,
        "arrowcolor": colour,
        "text": "",
    }
