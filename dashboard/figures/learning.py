"""How a run learned: which position when, and which head when. One column a kept step, with the steps' true numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import ROOM, bar_ends, scaled
from dashboard.figures.kit.lines import level, upright
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, template

MOST_DIGITS = 34
"""More than this under an axis, blanks between numbers counted, and they would touch in half a projector's width."""
MOST_NAMES = 24
"""More positions than this, and only some of them are named."""
APART = 0.075
"""How far apart the names of two curves have to be, as a share of the axis."""


def accuracy_by_step_heatmap(
    steps: np.ndarray,
    accuracy: np.ndarray,
    names: Sequence[str],
    groups: Sequence[str],
    *,
    learned: np.ndarray | None = None,
    moment: int | None = None,
    called: Sequence[str] = (),
    palette: Palette = LIGHT,
) -> go.Figure:
    """Position by step: int [measurement], float [measurement, target] from 0 to 1, the first position on top.

    `learned`, float [target], is the step from which on each position is right, nan where it never is: it gets a dot.
    `moment` is the step at which the heads sharpen; `called` is what the pointer says of a row that is more than a
    position. Look for the order in which the rows turn.
    """
    columns, rows = list(range(len(steps))), list(range(len(names)))
    rows_called = called or [f"position {i + 1} ({name})" for i, name in enumerate(names)]
    cells = {
        "type": "heatmap",
        "x": columns,
        "y": rows,
        "z": accuracy.T.astype(np.float32),
        **scaled(0.0, 1.0, palette.scale),
        "xgap": 1,
        "ygap": 1,
        "hovertext": [
            [
                f"{safe(rows_called[i])} at step {step}: {row[i]:.3f} right"
                for step, row in zip(steps, accuracy, strict=True)
            ]
            for i in rows
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "accuracy",
    }
    partings = [
        level(place + 0.5, {"color": palette.text, "width": 2})
        for place, (one, other) in enumerate(pairwise(groups))
        if one != other
    ]
    sharpen = [float(place) - 0.5 for place in np.flatnonzero(steps == moment)]
    every = -(-len(names) // MOST_NAMES)
    layout = {
        "meta": {"places": {"x": [int(step) for step in steps]}, "tokens": {"y": list(names)}},
        "template": template(palette),
        "xaxis": _steps(steps),
        "yaxis": {
            "autorange": "reversed",
            "tickvals": rows[::every],
            "ticktext": [safe(name) for name in names[::every]],
            "title": {"text": "place" if called else "target"},
            "showgrid": False,
            "tickfont": {"size": 13},
        },
        "shapes": [*partings, *(_moment(x, palette) for x in sharpen)],
        "annotations": [*bar_ends(0.0, 1.0, palette), *(_moment_name(x, palette, above=ROOM) for x in sharpen)],
        "margin": {"t": ROOM + 20, "r": 16},
        "showlegend": False,
    }
    return go.Figure([cells] if learned is None else [cells, _dots(steps, learned, palette)], layout)


def share_curves(
    steps: np.ndarray,
    shares: dict[str, np.ndarray],
    *,
    focus: str | None = None,
    even: float | None = None,
    moment: int | None = None,
    title: str = "share of attention on the answer",
    palette: Palette = LIGHT,
) -> go.Figure:
    """Share of each head's attention on the token to be said, or on what `title` says.

    int [frame], float [frame] by the head's name.

    `focus` is drawn thick; `even` is the share that an even look over everything visible would have; `moment` the step
    at which the heads sharpen.
    """
    curves = [
        {
            "type": "scatter",
            "x": np.arange(len(steps)),
            "y": shares[name].astype(np.float32),
            "mode": "lines+markers" if name == focus or len(steps) == 1 else "lines",
            "line": {
                "color": palette.measured if name == focus else palette.before,
                "width": 3.5 if name == focus else 1.75,
            },
            "marker": {"size": 6},
            "hovertext": [
                f"head {safe(name)} at step {step}: {share:.2f}"
                for step, share in zip(steps, shares[name], strict=True)
            ],
            "hovertemplate": "%{hovertext}<extra></extra>",
            "name": name,
        }
        for name in sorted(shares, key=lambda name: name == focus)  # the focused one last, on top
    ]
    shapes, names = [], _curve_names(shares, focus, len(steps), palette)
    if even is not None:
        shapes.append(level(even, {"color": palette.chance, "width": 2, "dash": "dot"}))
        names.append(_even_name(even, palette))
    for place in np.flatnonzero(steps == moment):
        shapes.append(_moment(float(place), palette))
        names.append(_moment_name(float(place), palette))
    layout = {
        "meta": {"places": {"x": [int(step) for step in steps]}},
        "template": template(palette),
        "xaxis": {**_steps(steps), "range": [-0.3, max(len(steps) - 0.7, 0.7)]},
        "yaxis": {
            "range": [-0.02, 1.04],
            "tickvals": [0, 0.25, 0.5, 0.75, 1],
            "title": {"text": title},
        },
        "shapes": shapes,
        "annotations": names,
        "margin": {"t": 22, "r": 52},
        "showlegend": False,
    }
    return go.Figure(curves, layout)


def _steps(steps: np.ndarray) -> dict[str, object]:
    """An axis with a column a step; as many of their numbers as have room, the first and the last among them."""
    last = len(steps) - 1

    def shown_with(every: int) -> list[int]:
        return sorted({*(i for i in range(0, last, every) if last - i >= every), last})

    def digits(shown: list[int]) -> int:
        return sum(len(f"{int(steps[i])} ") for i in shown)

    fewer = (shown_with(every) for every in range(1, last + 2))
    shown = next((found for found in fewer if digits(found) <= MOST_DIGITS), [last])
    return {
        "title": {"text": "step (kept steps, one column each)"},
        "tickmode": "array",
        "tickvals": shown,
        "ticktext": [f"{int(steps[i])}" for i in shown],
        "tickangle": 0,
        "tickfont": {"size": 13},
        "showgrid": False,
        "range": [-0.5, last + 0.5],
    }


def _dots(steps: np.ndarray, learned: np.ndarray, palette: Palette) -> dict[str, object]:
    """A dot in the cell from which on a position is right."""
    rows = np.flatnonzero(np.isfinite(learned))
    return {
        "type": "scatter",
        "x": [int(np.flatnonzero(steps == learned[row])[0]) for row in rows],
        "y": rows,
        "mode": "markers",
        "marker": {"size": 9, "color": palette.background, "line": {"color": palette.text, "width": 2}},
        "meta": {"numbers": False},  # said of the cells
        "hovertext": [f"from step {int(learned[row])} on, right nine times in ten" for row in rows],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "learned",
    }


def _moment(x: float, palette: Palette) -> dict[str, object]:
    """The step at which the heads sharpen."""
    return upright(x, {"color": palette.right, "width": 2, "dash": "dash"})


def _moment_name(x: float, palette: Palette, above: int = 0) -> dict[str, object]:
    """Its name, so many pixels above the plot."""
    return {
        "x": x,
        "y": 1.0,
        "yref": "paper",
        "yanchor": "bottom",
        "yshift": above,
        "text": "heads sharpen",
        "showarrow": False,
        "font": {"color": palette.right, "size": 14},
    }


def _even_name(even: float, palette: Palette) -> dict[str, object]:
    return {
        "x": 0.005,
        "xref": "paper",
        "xanchor": "left",
        "y": even,
        "yanchor": "top",
        "text": f"even attention: {even:.2f}",
        "showarrow": False,
        "font": {"color": palette.chance, "size": 14},
    }


def _curve_names(
    shares: dict[str, np.ndarray], focus: str | None, count: int, palette: Palette
) -> list[dict[str, object]]:
    """The heads' names at the ends of their curves, the focused one's first, then from the top, where none touch."""
    ends = {name: float(share[-1]) for name, share in shares.items() if len(share) and np.isfinite(share[-1])}
    shown: list[str] = []
    for name in sorted(ends, key=lambda name: (name != focus, -ends[name])):
        if all(abs(ends[name] - ends[other]) >= APART for other in shown):
            shown.append(name)
    return [
        {
            "x": count - 1,
            "y": ends[name],
            "xanchor": "left",
            "xshift": 8,
            "text": f"<b>{safe(name)}</b>" if name == focus else safe(name),
            "showarrow": False,
            "font": {
                "color": palette.text if name == focus else palette.muted,
                "size": 14 if name == focus else 13,
            },
        }
        for name in shown
    ]
