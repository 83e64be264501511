"""Curves of training, each with the lines it is to be read against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.lines import level, level_name, upright, veil, waiting
from dashboard.theme import LIGHT, Palette, template


def loss_curve(
    steps: np.ndarray,
    loss: np.ndarray,
    *,
    floor: float,
    chance: float,
    solved_at: int | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Loss in nats by step, int and float [step], between guessing (`chance`) and the `floor` that no model passes.

    Look at how far the curve is from either: at the upper line nothing is learned, at the lower one everything.
    """
    # The range only ever grows with the data, and has room under the floor for its label.
    top = max(chance * 1.12, float(loss.max(initial=0.0)) * 1.03)
    last = _last(steps)
    # A loss that does not fall lies about the line of guessing: the line's name then stands over the noise.
    crest = max(chance, float(loss[steps > 0.7 * last].max(initial=0.0)))
    shapes = [
        level(chance, {"color": palette.chance, "width": 2, "dash": "dot"}),
        level(floor, {"color": palette.ceiling, "width": 2, "dash": "dash"}),
    ]
    names = [
        level_name(crest, f"guessing: {chance:.2f}", palette.chance, palette, above=True),
        level_name(floor, f"loss floor: {floor:.2f}", palette.ceiling, palette, above=False),
    ]
    if solved_at is not None and len(steps):
        shapes.append(upright(solved_at, {"color": palette.right, "width": 2}))
        names.append(_solved_name(solved_at, last, palette))
    axis = {"title": {"text": "loss (nats)"}, "range": [-0.1 * top, top], "nticks": 6}
    return _curve(steps, loss, "step %{x}: loss %{y:.3f} nats", axis, palette, shapes, names)


def step_curve(steps: np.ndarray, values: np.ndarray, *, name: str, palette: Palette = LIGHT) -> go.Figure:
    """Any number that training has at each step, int and float [step], from zero up."""
    top = float(np.nanmax(values, initial=0.0)) or 1.0
    axis = {"title": {"text": name}, "range": [0, 1.1 * top], "nticks": 5, "tickformat": "~g"}
    return _curve(steps, values, f"step %{{x}}: {name} %{{y:.3g}}", axis, palette)


def _curve(
    steps: np.ndarray,
    values: np.ndarray,
    sentence: str,
    axis: dict[str, object],
    palette: Palette,
    shapes: Sequence[dict[str, object]] = (),
    names: Sequence[dict[str, object]] = (),
) -> go.Figure:
    """The line, a dot at its newest point, and the axis of steps; words where there is no step yet."""
    line = {
        "type": "scatter",
        "x": steps,
        "y": values.astype(np.float32),
        "mode": "lines",
        "line": {"color": palette.measured, "width": 2.5},
        "hovertemplate": f"{sentence}<extra></extra>",
        "name": "measured",
    }
    newest = {
        "type": "scatter",
        "x": steps[-1:],
        "y": values[-1:].astype(np.float32),
        "mode": "markers",
        "marker": {"color": palette.measured, "size": 9},
        "cliponaxis": False,
        "hoverinfo": "skip",
        "name": "now",
    }
    layout = {
        "template": template(palette),
        "showlegend": False,
        "xaxis": {"title": {"text": "step"}, "range": [0, _last(steps)], "nticks": 6},
        "yaxis": axis,
        "shapes": shapes,
        "annotations": [*([] if len(steps) else [waiting("waiting for the first step", palette)]), *names],
        "margin": {"r": 16},
    }
    return go.Figure([line, newest], layout)


def _solved_name(step: int, last: int, palette: Palette) -> dict[str, object]:
    """The step at which the task was solved, named on the side where there is more room."""
    early = step < last / 2
    return {
        "x": step,
        "xanchor": "left" if early else "right",
        "xshift": 6 if early else -6,
        "y": 0.62,
        "yref": "paper",
        "yanchor": "middle",
        "text": f"✓ solved at {step}",
        "showarrow": False,
        "borderpad": 1,
        "bgcolor": veil(palette),
        "font": {"color": palette.right, "size": 14},
    }


def _last(steps: np.ndarray) -> int:
    """Where the axis of steps ends."""
    return _round_up(int(steps[-1]) if len(steps) else 10)


def _round_up(step: int) -> int:
    """A step count, rounded up to 1, 1.5, 2, 3, … times a power of ten, so that the axis moves seldom."""
    power = 10 ** max(1, len(str(step)) - 1)
    return next(int(power * f) for f in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step <= power * f)


def held_out_curve(
    steps: np.ndarray,
    loss: np.ndarray,
    held_out: tuple[np.ndarray, np.ndarray],
    *,
    chance: float,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Loss of a text in nats by step: faint on what is learned from, and in front on what was held out (steps, nats).

    Look at whether the two part: then it learns by heart. `chance` is what who knows only the counts pays.
    """
    top = 1.03 * max(chance * 1.08, float(loss.max(initial=0.0)), float(held_out[1].max(initial=0.0)))
    learned = {
        "type": "scatter",
        "x": steps,
        "y": loss.astype(np.float32),
        "mode": "lines",
        "line": {"color": palette.before, "width": 1.5},
        "hovertemplate": "step %{x}: %{y:.3f} nats on the batch<extra></extra>",
        "name": "learned from",
    }
    other = {
        "type": "scatter",
        "x": held_out[0],
        "y": held_out[1].astype(np.float32),
        "mode": "lines+markers",
        "line": {"color": palette.measured, "width": 3},
        "marker": {"size": 7},
        "cliponaxis": False,
        "hovertext": [
            f"step {step}: {nats:.3f} nats, perplexity {np.exp(nats):.4g}, on what was held out"
            for step, nats in zip(held_out[0].tolist(), held_out[1].tolist(), strict=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "held out",
    }
    layout = {
        "template": template(palette),
        "xaxis": {"title": {"text": "step"}, "range": [0, _last(steps)], "nticks": 6},
        "yaxis": {"title": {"text": "loss (nats a token)"}, "range": [0, top], "nticks": 6},
        "shapes": [level(chance, {"color": palette.chance, "width": 2, "dash": "dot"})],
        "annotations": [level_name(chance, f"counts alone: {chance:.2f}", palette.chance, palette, above=True)],
        "legend": {"y": 1.0, "yanchor": "bottom", "x": 0.5, "xanchor": "center", "font": {"size": 14}},
        "margin": {"t": 30, "r": 16},
    }
    return go.Figure([learned, other], layout)
