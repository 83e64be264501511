"""Square corners: a walk in its plane, many of them side by side, errors, the alignment, and teacher forcing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.html.number_table import shaded
from dashboard.figures.kit.lines import end_name, frame, level, upright
from dashboard.figures.kit.numbers import written
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, colour_scale, share_colours, template

GIVEN, SAID, FREE, HELPED = 0, 1, 1, 4
"""Colours of the categorical palette: marks in the plane, and the two errors."""
HELPED_NAME = "fed the true corner"
BEYOND = 0.865
"""Where the numbers of a corner stand, as a share of the way to the plane's own corner."""
AHEAD = 2
"""Corners that are predicted."""
FLIGHT = 250
"""Milliseconds in which the crosses fly from one recorded step to the next."""
STEP, PANEL = 1.4, 3.1
"""Between two steps of a decoder in a diagram, and between two such diagrams."""
BOX = (0.55, 0.3)
"""Half the width and half the height of a box there."""
READS, CELL, PREDICTS, TRUE = 0, 1, 2, 3
"""Its rows, from below."""


@dataclass(frozen=True)
class Feeding:
    """What a decoder reads and says in two steps, float [step, 2] each, and the true corners."""

    name: str
    reads: np.ndarray
    says: np.ndarray
    true: np.ndarray
    helped: bool
    """Is its second input the true corner, and not its own?"""

    @property
    def off(self) -> np.ndarray:
        """How far each corner that is said is from the true one, float [step]."""
        distances: np.ndarray = np.linalg.norm(self.says - self.true, axis=1)
        return distances


def walk_plane(
    given: np.ndarray,
    true: np.ndarray,
    said: np.ndarray | None,
    visited: np.ndarray,
    *,
    reach: float,
    flying: bool = False,
    palette: Palette = LIGHT,
) -> go.Figure:
    """One walk: its given corners float [given, 2], the true next ones [2, 2], and those that are said, if any.

    `visited` are all of them without noise, [given + 2, 2], for their numbers; `reach` is half the side of the plane.
    Look for crosses in their open circles.
    """
    axis = {"range": [-reach, reach], "tickvals": [-1, 0, 1], "zeroline": False}
    layout = {
        "template": template(palette),
        "xaxis": {**axis, "constrain": "domain"},
        "yaxis": {**axis, "scaleanchor": "x", "constrain": "domain"},
        "shapes": [_square(palette)],
        "annotations": _numbers(visited, len(given), BEYOND * reach, palette),
        "legend": {"x": 0.5, "xanchor": "center", "font": {"size": 15}, "itemsizing": "trace"},
        "margin": {"t": 30, "l": 4, "r": 4, "b": 4},
        **({"transition": {"duration": FLIGHT, "easing": "linear"}} if flying else {}),
    }
    return go.Figure(_marks(given, true, said, palette, large=True), layout)


def walk_panels(
    given: np.ndarray,
    true: np.ndarray,
    said: np.ndarray | None,
    *,
    names: Sequence[str],
    columns: int,
    chosen: int,
    reach: float,
    flying: bool = False,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Walks side by side, float [walk, corner, 2] of each kind, `columns` in a row; a frame around the `chosen` one."""
    rows = -(-len(given) // columns)
    traces: list[go.Scatter] = []
    axes: dict[str, Any] = {}
    shapes = []
    for walk in range(len(given)):
        row, column = divmod(walk, columns)
        index = "" if walk == 0 else str(walk + 1)
        place = {"showticklabels": False, "showgrid": False, "range": [-reach, reach], "ticks": "", "fixedrange": True}
        axes[f"xaxis{index}"] = {**place, "domain": _share(column, columns), "anchor": f"y{index}"}
        axes[f"yaxis{index}"] = {**place, "domain": _share(rows - 1 - row, rows), "anchor": f"x{index}"}
        axes[f"yaxis{index}"] |= {"scaleanchor": f"x{index}"}
        shapes.append(_square(palette, index))
        if walk == chosen:
            line = {"color": palette.accent, "width": 3}
            edge = {"x0": 0, "x1": 1, "y0": 0, "y1": 1, "xref": f"x{index} domain", "yref": f"y{index} domain"}
            shapes.append({"type": "rect", "line": line, **edge})
        marks = _marks(given[walk], true[walk], None if said is None else said[walk], palette, large=False)
        name = safe(names[walk])
        traces += [
            {**mark, "xaxis": f"x{index}", "yaxis": f"y{index}", "name": f"{mark['name']}, {name}"} for mark in marks
        ]
        for mark in traces[-len(marks) :]:
            mark["customdata"] = [walk] * len(mark["x"])
            mark["hovertemplate"] = f"{name}<extra></extra>"
    layout = {
        "template": template(palette),
        "showlegend": False,
        "shapes": shapes,
        "margin": {"t": 2, "l": 2, "r": 2, "b": 2},
        **({"transition": {"duration": FLIGHT, "easing": "linear"}} if flying else {}),
    }
    return go.Figure(traces, layout | axes)


def error_curves(
    steps: np.ndarray, free: np.ndarray, helped: np.ndarray, *, floor: float, last: int, palette: Palette = LIGHT
) -> go.Figure:
    """The two errors over the steps so far, float [step] each, of `last` to come, above what noise alone leaves."""
    traces = [
        _curve(steps, free, "free-running", FREE, "solid", palette),
        _curve(steps, helped, HELPED_NAME, HELPED, "dot", palette),
    ]
    most = float(max(free.max(initial=0.5), helped.max(initial=0.5)))
    layout = {
        **_errors(palette, floor, [0, most * 1.05]),
        "xaxis": {"title": {"text": "step"}, "range": [0, last]},
        "legend": {"x": 1, "xanchor": "right", "y": 1, "yanchor": "top", "orientation": "v", "font": {"size": 14}},
    }
    if len(steps):
        now = {"color": palette.muted, "width": 1, "dash": "dot"}
        layout["shapes"] = [*layout["shapes"], upright(float(steps[-1]), now)]
    return go.Figure(traces, layout)


def alignment_heatmap(pattern: np.ndarray, *, palette: Palette = LIGHT) -> go.Figure:
    """The alignment α: float [said, given] from 0 to 1, one fixed scale, its numbers in the cells."""
    said, given = pattern.shape
    rows, columns = [str(given + 1 + i) for i in range(said)], [str(1 + i) for i in range(given)]
    sentences = [
        [f"corner {row} looks at corner {column}: {pattern[i, j]:.3f}" for j, column in enumerate(columns)]
        for i, row in enumerate(rows)
    ]
    cells = {
        "type": "heatmap",
        "z": pattern.astype(np.float32),
        "zmin": 0.0,
        "zmax": 1.0,
        "colorscale": colour_scale(palette.scale),
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "text": sentences,
        "hovertemplate": "%{text}<extra></extra>",
        "name": "alignment",
    }
    shares = pattern.ravel()
    numbers = {
        "type": "scatter",
        "x": np.tile(np.arange(given), said),
        "y": np.repeat(np.arange(said), given),
        "mode": "text",
        "text": [f"{share:.2f}" for share in shares],
        "textfont": {"size": 16, "color": [share_colours(share, palette)[1] for share in np.clip(shares, 0, 1)]},
        "hoverinfo": "skip",
        "name": "numbers",
    }
    ticks = {"showgrid": False, "ticks": "", "tickfont": {"size": 15}}
    layout = {
        "template": template(palette),
        "xaxis": {"title": {"text": "given corner"}, "tickvals": list(range(given)), "ticktext": columns, **ticks},
        "yaxis": {"title": {"text": "predicted"}, "tickvals": list(range(said)), "ticktext": rows, **ticks},
        "meta": {"tokens": {"x": columns, "y": rows}},
    }
    layout["xaxis"] |= {"range": [-0.5, given - 0.5]}
    layout["yaxis"] |= {"range": [said - 0.5, -0.5]}
    return go.Figure([cells, numbers], layout)


def handed_over_heatmap(states: np.ndarray, *, palette: Palette = LIGHT) -> go.Figure:
    """Hidden states, float [given + 2, d_model]: those of the encoder, a gap, the decoder's two; numbers in the cells.

    A frame marks the encoder's last state, and an arrow leads from it over the gap.
    """
    given, d = len(states) - AHEAD, states.shape[1]
    gap = given + 1 + 0.2 * given  # where the decoder's columns begin
    limit = float(np.abs(states).max()) or 1.0
    places = np.array([*range(given), gap, gap + 1])
    sides = ((states[:given], places[:given], "encoder"), (states[given:], places[given:], "decoder"))
    cells = [
        {
            "type": "heatmap",
            "z": side.T.astype(np.float32),
            "x": x,
            "zmin": -limit,
            "zmax": limit,
            "colorscale": colour_scale(palette.signed),
            "showscale": False,
            "xgap": 2,
            "ygap": 2,
            "hovertemplate": f"{name}, number %{{y}}: %{{z:.3f}}<extra></extra>",
            "name": name,
        }
        for side, x, name in sides
    ]
    values = states.ravel()
    numbers = {
        "type": "scatter",
        "x": np.repeat(places, d),
        "y": np.tile(np.arange(d), len(states)),
        "mode": "text",
        "text": [written(float(value), 2 if given < 5 else 1) for value in values],
        "textfont": {
            "size": 15 if given < 4 else 12,
            "color": [shaded(float(value) / limit, palette.signed, signed=True)[1] for value in values],
        },
        "hoverinfo": "skip",
        "name": "numbers",
    }
    accent = {"color": palette.accent, "width": 4}
    middle = (given - 0.5 + gap - 0.5) / 2
    named = {"yref": "paper", "y": 1, "yanchor": "bottom", "showarrow": False, "font": {"size": 15}}
    layout = {
        "template": template(palette),
        "showlegend": False,
        "xaxis": {
            "title": {"text": "corner read, corner predicted"},
            "tickvals": places,
            "ticktext": [str(1 + i) for i in range(len(states))],
            "range": [-0.6, gap + 1.6],
            "showgrid": False,
            "zeroline": False,
        },
        "yaxis": {
            "tickvals": list(range(d)),
            "ticktext": [f"h<sub>{1 + i}</sub>" for i in range(d)],
            "range": [d - 0.45, -0.55],
            "showgrid": False,
            "zeroline": False,
        },
        "shapes": [frame(given - 1.5, -0.5, given - 0.5, d - 0.5, accent)],
        "annotations": [
            {**named, "x": (given - 1) / 2, "text": "encoder"},
            {**named, "x": gap + 0.5, "text": "decoder"},
            {
                "x": gap - 0.5,
                "y": (d - 1) / 2,
                "ax": given - 0.45,
                "ay": (d - 1) / 2,
                "axref": "x",
                "ayref": "y",
                "text": "",
                "showarrow": True,
                "arrowcolor": palette.accent,
                "arrowwidth": 4,
                "arrowhead": 2,
            },
            {
                "x": middle,
                "y": (d - 1) / 2,
                "yanchor": "bottom",
                "yshift": 8,
                "showarrow": False,
                "text": "<b>the<br>vector</b>",
                "font": {"size": 15, "color": palette.text},
            },
        ],
        "margin": {"t": 26, "l": 8, "r": 4, "b": 8},
    }
    return go.Figure([*cells, numbers], layout)


def feeding_diagram(feedings: Sequence[Feeding], *, corners: Sequence[int], palette: Palette = LIGHT) -> go.Figure:
    """Two steps of a decoder for each way of feeding it, side by side; `corners` are the numbers of those it says.

    Look where the thick arrow begins: at the true corner, or at the prediction.
    """
    wide, tall = BOX
    rows: dict[str, tuple[int, list[float], list[str]]] = {
        "reads": (READS, [], []), "predicts": (PREDICTS, [], []), "true": (TRUE, [], [])
    }  # fmt: skip
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    missed: tuple[list[float], list[str]] = ([], [])
    for panel, feeding in enumerate(feedings):
        colour = palette.categorical[HELPED if feeding.helped else FREE]
        first, second = (panel * PANEL + step * STEP for step in range(AHEAD))
        for step, x in enumerate((first, second)):
            points = {"reads": feeding.reads[step], "predicts": feeding.says[step], "true": feeding.true[step]}
            for name, point in points.items():
                rows[name][1].append(x)
                rows[name][2].append(f"({written(float(point[0]), 2)}, {written(float(point[1]), 2)})")
            missed[0].append(x)
            missed[1].append(f"{feeding.off[step]:.2f} off")
            lines = {
                READS: (colour, 4) if step else (palette.muted, 1.5),
                CELL: (palette.muted, 1.5),
                PREDICTS: (palette.categorical[SAID], 2.5),
                TRUE: (palette.text, 2.5),
            }
            shapes += [
                {**frame(x - wide, y - tall, x + wide, y + tall, {"color": line, "width": width}), "layer": "below"}
                for y, (line, width) in lines.items()
            ]
            up = {"arrowcolor": palette.muted, "arrowwidth": 1.5}
            notes += [_arrow((x, y + tall), (x, y + 1 - tall), **up) for y in (READS, CELL)]
        notes.append(_arrow((first + wide, CELL), (second - wide, CELL), arrowcolor=palette.muted, arrowwidth=1.5))
        begins, middle = TRUE if feeding.helped else PREDICTS, (first + second) / 2
        way = f"M {first + wide},{begins} L {middle},{begins} L {middle},{READS} L {second - wide - 0.1},{READS}"
        shapes.append({"type": "path", "path": way, "line": {"color": colour, "width": 4}})
        notes.append(
            _arrow((middle, READS), (second - wide, READS), arrowcolor=colour, arrowwidth=4, arrowsize=0.6, arrowhead=2)
        )
        named = {"yref": "paper", "y": 1, "yanchor": "bottom", "showarrow": False, "font": {"size": 15}}
        notes.append({**named, "x": middle, "text": f"<b>{safe(feeding.name)}</b>"})
    centres = np.array([panel * PANEL + step * STEP for panel in range(len(feedings)) for step in range(AHEAD)])
    notes += [
        {"x": x, "y": CELL, "text": "decoder", "showarrow": False, "font": {"size": 15, "color": palette.muted}}
        for x in centres.tolist()
    ]
    texts = [(name, y, x, text) for name, (y, x, text) in rows.items()]
    traces = [
        {
            "type": "scatter",
            "x": x,
            "y": [float(y)] * len(x),
            "mode": "text",
            "text": text,
            "textfont": {"size": 15 if name != "off" else 14, "color": palette.text},
            "hovertemplate": f"{name} %{{text}}<extra></extra>",
            "name": name,
        }
        for name, y, x, text in [*texts, ("off", (PREDICTS + TRUE) / 2, *missed)]
    ]
    plain_axis = {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True}
    layout = {
        "template": template(palette),
        "showlegend": False,
        "xaxis": {
            **plain_axis,
            "tickvals": centres,
            "ticktext": [f"to predict corner {corner}" for _ in feedings for corner in corners],
            "tickfont": {"size": 15},
            "range": [-wide - 0.1, float(centres[-1]) + wide + 0.1],
        },
        "yaxis": {
            **plain_axis,
            "tickvals": [READS, CELL, PREDICTS, TRUE],
            "ticktext": ["reads ", "", "predicts ", "true "],
            "tickfont": {"size": 15},
            "range": [-0.45, TRUE + 0.45],
        },
        "shapes": shapes,
        "annotations": notes,
        "margin": {"t": 28, "l": 8, "r": 4, "b": 8},
    }
    return go.Figure(traces, layout)


def growth_bars(
    free: np.ndarray, helped: np.ndarray, *, floor: float, corners: Sequence[int], palette: Palette = LIGHT
) -> go.Figure:
    """Errors of the two corners that are said, float [corner], free-running and fed the true one, above noise alone."""
    most = float(max(free.max(), helped.max(), 0.1))
    places = np.arange(AHEAD)
    traces = [
        {
            "type": "bar",
            "x": places + shift,
            "y": values.astype(np.float32),
            "width": 0.34,
            "marker": {
                "color": palette.categorical[colour],
                "pattern": {"shape": shape, "fillmode": "overlay", "fgcolor": palette.background, "solidity": 0.15},
            },
            "text": [f"{value:.2f}" for value in values],
            "textposition": "outside",
            "textfont": {"size": 15, "color": palette.text},
            "cliponaxis": False,
            "hovertemplate": "%{y:.3f} off<extra>" + name + "</extra>",
            "name": name,
        }
        for values, name, colour, shape, shift in (
            (helped, HELPED_NAME, HELPED, "/", -0.19),
            (free, "free-running", FREE, "", 0.19),
        )
    ]
    layout = {
        **_errors(palette, floor, [0, most * 1.2]),
        "hovermode": "closest",
        "barmode": "overlay",
        "xaxis": {
            "tickvals": places,
            "ticktext": [f"corner {corner}" for corner in corners],
            "tickfont": {"size": 15},
            "range": [-0.5, AHEAD - 0.5],
            "showgrid": False,
        },
        "legend": {"x": 0, "y": 1.02, "font": {"size": 14}},
    }
    return go.Figure(traces, layout)


def forcing_curves(
    chances: np.ndarray,
    free: np.ndarray,
    helped: np.ndarray,
    *,
    floor: float,
    chosen: float,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Errors after training, float [chance, seed] each, against the probability of teacher forcing.

    Thick: the mean over seeds; small marks: each seed. A line stands at the `chosen` probability.
    """
    traces = []
    for values, name, colour, dash, shift in (
        (free, "free-running", FREE, "solid", -0.006),
        (helped, HELPED_NAME, HELPED, "dot", 0.006),
    ):
        seeds = {
            "type": "scatter",
            "x": np.repeat(chances + shift, values.shape[1]),
            "y": values.ravel().astype(np.float32),
            "mode": "markers",
            "marker": {"size": 7, "color": palette.categorical[colour], "opacity": 0.55},
            "showlegend": False,
            "hovertemplate": "%{y:.3f}<extra>a seed, " + name + "</extra>",
            "name": f"{name}, each seed",
        }
        known = np.isfinite(values)
        mean = np.where(known, values, 0).sum(axis=1) / np.where(known.any(axis=1), known.sum(axis=1), np.nan)
        traces += [seeds, _curve(chances, mean, name, colour, dash, palette)]
    low, high = float(np.nanmin([free, helped])), float(np.nanmax([free, helped]))
    bottom = min(low, floor)
    room = 0.12 * max(high - bottom, 0.02)
    layout = {
        **_errors(palette, floor, [max(0.0, bottom - room), high + room]),
        "xaxis": {
            "title": {"text": "probability p of reading the true corner while training"},
            "tickvals": chances.tolist(),
            "range": [-0.03, 1.03],
        },
        "legend": {"x": 0, "y": 1.02},
    }
    now = {"color": palette.muted, "width": 1, "dash": "dot"}
    layout["shapes"] = [*layout["shapes"], upright(chosen, now)]
    return go.Figure(traces, layout)


def _arrow(tail: tuple[float, float], head: tuple[float, float], **looks: object) -> dict[str, Any]:
    """An annotation: an arrow from one point of the plane to another."""
    return {
        "x": head[0],
        "y": head[1],
        "ax": tail[0],
        "ay": tail[1],
        "axref": "x",
        "ayref": "y",
        "text": "",
        "showarrow": True,
        "arrowhead": 2,
        **looks,
    }


def _curve(x: np.ndarray, y: np.ndarray, name: str, colour: int, dash: str, palette: Palette) -> dict[str, Any]:
    """A thick line."""
    return {
        "type": "scatter",
        "x": x,
        "y": y.astype(np.float32),
        "mode": "lines",
        "line": {"color": palette.categorical[colour], "width": 3, "dash": dash},
        "name": name,
        "hovertemplate": "%{y:.3f} off<extra>" + name + "</extra>",
    }


def _errors(palette: Palette, floor: float, reach: list[float]) -> dict[str, Any]:
    """What charts of errors share: the vertical axis, and the level that noise alone leaves."""
    line = {"color": palette.ceiling, "width": 2, "dash": "dash"}
    return {
        "template": template(palette),
        "hovermode": "x unified",
        "yaxis": {"title": {"text": "error"}, "range": reach},
        "shapes": [level(floor, line)],
        "annotations": [end_name(floor, f"noise<br>{floor:.2f}", palette.ceiling)],
        "margin": {"t": 8, "l": 8, "r": 56, "b": 8},
    }


def _marks(
    given: np.ndarray, true: np.ndarray, said: np.ndarray | None, palette: Palette, *, large: bool
) -> list[dict[str, Any]]:
    """Given corners as filled marks with their way, the true next ones open, and crosses at those that are said."""
    colours, big = palette.categorical, 1.0 if large else 0.5
    told = np.full((2, 2), np.nan) if said is None else said
    way = np.vstack([given[-1:], told])
    return [
        {
            "type": "scatter",
            "x": x.astype(np.float32),
            "y": y.astype(np.float32),
            "mode": "lines+markers",
            "line": {"color": colour, "width": width * big + 0.5},
            "marker": {
                "symbol": symbol,
                "size": sizes,
                "color": colour,
                "opacity": 1,
                "line": {"width": 4 * big, "color": colour},
            },
            "name": name,
            "hovertemplate": f"{name}: %{{x:.2f}}, %{{y:.2f}}<extra></extra>",
            "cliponaxis": False,
        }
        | changes
        for x, y, colour, width, symbol, sizes, name, changes in (
            (*given.T, colours[GIVEN], 2, "circle", 15 * big, "given", {}),
            (*true.T, palette.text, 0, "circle-open", 26 * big, "true next", {"mode": "markers"}),
            (*way.T, colours[SAID], 3, "x-thin", [0, 16 * big, 16 * big], "predicted", {}),
        )
    ]


def _numbers(visited: np.ndarray, given: int, out: float, palette: Palette) -> list[dict[str, Any]]:
    """Outside of each corner, so far `out`, which ones of the walk it is: a walk of many comes by twice."""
    at: dict[tuple[float, float], list[str]] = {}
    for i, (x, y) in enumerate(visited):
        colour = palette.categorical[GIVEN] if i < given else palette.text
        word = f'<span style="color:{colour}">{i + 1}{"" if i < given else "?"}</span>'
        at.setdefault((float(x), float(y)), []).append(word)
    return [
        {
            "x": out * x,
            "y": out * y,
            "text": f"<b>{', '.join(words)}</b>",
            "showarrow": False,
            "font": {"size": 18},
        }
        for (x, y), words in at.items()
    ]


def _square(palette: Palette, index: str = "") -> dict[str, Any]:
    line = {"color": palette.grid, "width": 3}
    axes = {"xref": f"x{index}", "yref": f"y{index}", "layer": "below"}
    return {"type": "rect", "x0": -1, "x1": 1, "y0": -1, "y1": 1, "line": line, **axes}


def _share(place: int, of: int, gap: float = 0.03) -> list[float]:
    """One of several equal parts of 0 to 1, with gaps between them."""
    part = (1 + gap) / of
    return [place * part, place * part + part - gap]
