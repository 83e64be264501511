"""Curves of training, each with the lines it is to be read against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import level, level_name, upright, veil, waiting
from dashboard.theme import LIGHT, Palette, template


def loss_axes(
    steps: np.ndarray,
    loss: np.ndarray,
    *,
    floor: float | None,
    chance: float,
    held_out: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """From where to where the axes of a loss go, of steps and of nats, both linear: the same in every picture of it.

    From step 0 to a round one. Upwards to the greatest of the losses and guessing (`chance`), with what was held out;
    downwards to a little below 0, where the name of the `floor` stands. Of a text nobody knows a floor, and its loss
    never gets near to 0: there the axis ends a little below the least loss, and a name has room there.
    """
    drawn = np.concatenate([loss, [] if held_out is None else held_out[1]])
    top = max(chance * 1.12, float(drawn.max(initial=0.0)) * 1.03)
    lowest = float(drawn.min(initial=chance))
    least = -0.1 * top if floor is not None else lowest - 0.25 * (top - lowest)
    return (0, _round_up(int(steps[-1]) if len(steps) else 10)), (least, top)


def loss_curve(
    steps: np.ndarray,
    loss: np.ndarray,
    *,
    floor: float | None,
    chance: float,
    guess: str = "guessing",
    held_out: tuple[np.ndarray, np.ndarray] | None = None,
    solved_at: int | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Loss in nats by step, int and float [step], between guessing (`chance`) and the `floor` that no model passes.

    Look at how far the curve is from either: at the upper line nothing is learned, at the lower one everything. Of a
    text nobody knows the floor, and guessing is knowing how common each token is; `held_out` are then the steps, and
    the loss at each, of what was not learned from: where that rises again the text is learned by heart.
    """
    span, nats = loss_axes(steps, loss, floor=floor, chance=chance, held_out=held_out)
    last = span[1]
    # A loss that does not fall lies about the line of guessing: the line's name then stands over the noise.
    crest = max(chance, float(loss[steps > 0.7 * last].max(initial=0.0)))
    shapes = [
        level(chance, {"color": palette.chance, "width": 2, "dash": "dot"}),
    ]
    names = [level_name(crest, f"{guess}: {chance:.2f}", palette.chance, palette, above=True)]
    if floor is not None:
        shapes.append(level(floor, {"color": palette.ceiling, "width": 2, "dash": "dash"}))
        names.append(level_name(floor, f"loss floor: {floor:.2f}", palette.ceiling, palette, above=False))
    others = [] if held_out is None else [_held_out(*held_out, palette)]
    names += [] if held_out is None or not len(held_out[0]) else [_held_out_name(held_out[1], palette)]
    if solved_at is not None and len(steps):
        shapes.append(upright(solved_at, {"color": palette.right, "width": 2}))
        names.append(_solved_name(solved_at, last, palette))
    axis = {"title": {"text": "loss (nats)"}, "range": nats, "nticks": 6}
    return _curve(steps, loss, "step %{x}: loss %{y:.3f} nats", axis, palette, shapes, names, others)


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
    others: Sequence[dict[str, object]] = (),
) -> go.Figure:
    """The line, `others`, a dot at its newest point, and the axis of steps; words where there is no step yet."""
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
    return go.Figure([line, *others, newest], layout)


def _held_out(steps: np.ndarray, nats: np.ndarray, palette: Palette) -> dict[str, object]:
    """The loss on what was held out, at the steps at which it was read."""
    return {
        "type": "scatter",
        "x": steps,
        "y": nats.astype(np.float32),
        "mode": "lines+markers",
        "line": {"color": palette.right, "width": 3},
        "marker": {"color": palette.right, "size": 6},
        "hovertemplate": "step %{x}: held out, loss %{y:.3f} nats<extra></extra>",
        "name": "held out",
    }


def _held_out_name(nats: np.ndarray, palette: Palette) -> dict[str, object]:
    """What the curve of what was held out is called, in a corner where a loss that falls never is."""
    return {
        "x": 0.005,
        "xref": "paper",
        "xanchor": "left",
        "y": 0.02,
        "yref": "paper",
        "yanchor": "bottom",
        "text": f"held out: {nats[-1]:.2f}",
        "showarrow": False,
        "borderpad": 1,
        "bgcolor": veil(palette),
        "font": {"color": palette.right, "size": 14},
    }


def _solved_name(step: int, last: float, palette: Palette) -> dict[str, object]:
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
