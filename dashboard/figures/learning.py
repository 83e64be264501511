"""How a run learned: which position when, and which head when. One column a kept step, with the steps' true numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.colour_bar import ROOM, name_ends, slim_bar
from dashboard.figures.token_axis import safe
from dashboard.theme import LIGHT, Palette, colour_scale, template

MOST_STEPS = 16
"""More numbers than this under an axis, and they would touch."""
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
    palette: Palette = LIGHT,
) -> go.Figure:
    """Position by step: int [measurement], float [measurement, target] from 0 to 1, the first position on top.

    `learned`, float [target], is the step from which on each position is right, nan where it never is: it gets a dot.
    `moment` is the step at which the heads sharpen. Look for the order in which the rows turn.
    """
    columns, rows = list(range(len(steps))), list(range(len(names)))
    figure = go.Figure(
        go.Heatmap(
            x=columns,
            y=rows,
            z=accuracy.T.astype(np.float32),
            zmin=0.0,
            zmax=1.0,
            colorscale=colour_scale(palette.scale),
            colorbar=slim_bar(),
            xgap=1,
            ygap=1,
            hovertext=[
                [
                    f"position {i + 1} ({safe(names[i])}) at step {step}: {row[i]:.3f} right"
                    for step, row in zip(steps, accuracy, strict=True)
                ]
                for i in rows
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            name="accuracy",
        )
    )
    name_ends(figure, 0.0, 1.0, palette)
    if learned is not None:
        _dots(figure, steps, accuracy, learned, palette)
    for place, (one, other) in enumerate(pairwise(groups)):
        if one != other:
            figure.add_hline(y=place + 0.5, line={"color": palette.text, "width": 2})
    if moment is not None and moment in steps:
        _moment(figure, float(np.flatnonzero(steps == moment)[0]) - 0.5, palette, above=ROOM)
    every = -(-len(names) // MOST_NAMES)
    figure.update_layout(
        meta={"places": {"x": [int(step) for step in steps]}, "tokens": {"y": list(names)}},
        template=template(palette),
        xaxis=_steps(steps),
        yaxis={
            "autorange": "reversed",
            "tickvals": rows[::every],
            "ticktext": [safe(name) for name in names[::every]],
            "title": {"text": "target"},
            "showgrid": False,
            "tickfont": {"size": 13},
        },
        margin={"t": ROOM + 20, "r": 16},
        showlegend=False,
    )
    return figure


def share_curves(
    steps: np.ndarray,
    shares: dict[str, np.ndarray],
    *,
    focus: str | None = None,
    even: float | None = None,
    moment: int | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Share of each head's attention on the token to be said: int [frame], float [frame] by the head's name.

    `focus` is drawn thick; `even` is the share that an even look over everything visible would have; `moment` the step
    at which the heads sharpen.
    """
    figure = go.Figure()
    places = np.arange(len(steps))
    for name in sorted(shares, key=lambda name: name == focus):  # the focused one last, on top
        chosen = name == focus
        figure.add_scatter(
            x=places,
            y=shares[name].astype(np.float32),
            mode="lines+markers" if chosen or len(steps) == 1 else "lines",
            line={"color": palette.measured if chosen else palette.before, "width": 3.5 if chosen else 1.75},
            marker={"size": 6},
            hovertext=[
                f"head {safe(name)} at step {step}: {share:.2f}"
                for step, share in zip(steps, shares[name], strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            name=name,
        )
    _name_curves(figure, shares, focus, len(steps), palette)
    if even is not None:
        figure.add_hline(y=even, line={"color": palette.chance, "width": 2, "dash": "dot"})
        figure.add_annotation(
            x=0.005,
            xref="paper",
            xanchor="left",
            y=even,
            yanchor="top",
            text=f"an even look: {even:.2f}",
            showarrow=False,
            font={"color": palette.chance, "size": 14},
        )
    if moment is not None and moment in steps:
        _moment(figure, float(np.flatnonzero(steps == moment)[0]), palette)
    figure.update_layout(
        meta={"places": {"x": [int(step) for step in steps]}},
        template=template(palette),
        xaxis={**_steps(steps), "range": [-0.3, max(len(steps) - 0.7, 0.7)]},
        yaxis={"range": [-0.02, 1.04], "tickvals": [0, 0.25, 0.5, 0.75, 1], "title": {"text": "share on the answer"}},
        margin={"t": 22, "r": 52},
        showlegend=False,
    )
    return figure


def _steps(steps: np.ndarray) -> dict[str, object]:
    """An axis with a column a step; as many of their numbers as have room, the first and the last among them."""
    last = len(steps) - 1
    every = max(1, -(-last // MOST_STEPS))
    shown = sorted({*(i for i in range(0, last, every) if last - i >= every), last})
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


def _dots(figure: go.Figure, steps: np.ndarray, accuracy: np.ndarray, learned: np.ndarray, palette: Palette) -> None:
    """A dot in the cell from which on a position is right."""
    rows = np.flatnonzero(np.isfinite(learned))
    columns = [int(np.flatnonzero(steps == learned[row])[0]) for row in rows]
    figure.add_scatter(
        x=columns,
        y=rows,
        mode="markers",
        marker={"size": 9, "color": palette.background, "line": {"color": palette.text, "width": 2}},
        meta={"numbers": False},  # said of the cells
        hovertext=[f"from step {int(learned[row])} on, right nine times in ten" for row in rows],
        hovertemplate="%{hovertext}<extra></extra>",
        name="learned",
    )


def _moment(figure: go.Figure, x: float, palette: Palette, above: int = 0) -> None:
    """The step at which the heads sharpen, named so many pixels above the plot."""
    figure.add_vline(x=x, line={"color": palette.right, "width": 2, "dash": "dash"})
    figure.add_annotation(
        x=x,
        y=1.0,
        yref="paper",
        yanchor="bottom",
        yshift=above,
        text="heads sharpen",
        showarrow=False,
        font={"color": palette.right, "size": 14},
    )


def _name_curves(
    figure: go.Figure, shares: dict[str, np.ndarray], focus: str | None, count: int, palette: Palette
) -> None:
    """The heads' names at the ends of their curves, the focused one's first, then from the top, where none touch."""
    taken: list[float] = []
    ends = {name: float(share[-1]) for name, share in shares.items() if len(share) and np.isfinite(share[-1])}
    for name in sorted(ends, key=lambda name: (name != focus, -ends[name])):
        if any(abs(ends[name] - other) < APART for other in taken):
            continue
        taken.append(ends[name])
        chosen = name == focus
        figure.add_annotation(
            x=count - 1,
            y=ends[name],
            xanchor="left",
            xshift=8,
            text=f"<b>{safe(name)}</b>" if chosen else safe(name),
            showarrow=False,
            font={"color": palette.text if chosen else palette.muted, "size": 14 if chosen else 13},
        )
