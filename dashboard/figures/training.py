"""Curves of training, each with the lines it is to be read against."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from dashboard.theme import LIGHT, Palette, rgb, template


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
    figure = _curve(steps, loss, "step %{x}: loss %{y:.3f} nats", palette)
    last = _round_up(int(steps[-1]) if len(steps) else 10)
    # A loss that does not fall lies about the line of guessing: the line's name then stands over the noise.
    crest = max(chance, float(loss[steps > 0.7 * last].max(initial=0.0)))
    _level(figure, chance, f"guessing: {chance:.2f}", "dot", palette.chance, palette, above=True, name_at=crest)
    _level(figure, floor, f"loss floor: {floor:.2f}", "dash", palette.ceiling, palette, above=False)
    if solved_at is not None and len(steps):
        _mark_solved(figure, solved_at, last, palette)
    figure.update_yaxes(title={"text": "loss (nats)"}, range=[-0.1 * top, top], nticks=6)
    return figure


def step_curve(steps: np.ndarray, values: np.ndarray, *, name: str, palette: Palette = LIGHT) -> go.Figure:
    """Any number that training has at each step, int and float [step], from zero up."""
    figure = _curve(steps, values, f"step %{{x}}: {name} %{{y:.3g}}", palette)
    top = float(np.nanmax(values, initial=0.0)) or 1.0
    figure.update_yaxes(title={"text": name}, range=[0, 1.1 * top], nticks=5, tickformat="~g")
    return figure


def _curve(steps: np.ndarray, values: np.ndarray, sentence: str, palette: Palette) -> go.Figure:
    """The line, a dot at its newest point, and the axis of steps; words where there is no step yet."""
    figure = go.Figure()
    figure.add_scatter(
        x=steps,
        y=values.astype(np.float32),
        mode="lines",
        line={"color": palette.measured, "width": 2.5},
        hovertemplate=f"{sentence}<extra></extra>",
        name="measured",
    )
    figure.add_scatter(
        x=steps[-1:],
        y=values[-1:].astype(np.float32),
        mode="markers",
        marker={"color": palette.measured, "size": 9},
        cliponaxis=False,
        hoverinfo="skip",
        name="now",
    )
    if not len(steps):
        figure.add_annotation(
            x=0.5,
            y=0.5,
            xref="paper",
            yref="paper",
            text="waiting for the first step",
            showarrow=False,
            font={"size": 15, "color": palette.muted},
        )
    figure.update_layout(
        template=template(palette),
        showlegend=False,
        xaxis={"title": {"text": "step"}, "range": [0, _round_up(int(steps[-1]) if len(steps) else 10)], "nticks": 6},
        margin={"r": 16},
    )
    return figure


def _level(
    figure: go.Figure,
    y: float,
    text: str,
    dash: str,
    colour: str,
    palette: Palette,
    *,
    above: bool,
    name_at: float | None = None,
) -> None:
    """A level with its name: guessing on the right, over its line; the floor on the left, under it.

    The curve starts high on the left, ends low on the right, and does not pass the floor: it meets neither name.
    """
    figure.add_hline(y=y, line={"color": colour, "width": 2, "dash": dash})
    figure.add_annotation(
        x=0.995 if above else 0.005,
        xref="paper",
        xanchor="right" if above else "left",
        y=y if name_at is None else name_at,
        yanchor="bottom" if above else "top",
        text=text,
        showarrow=False,
        borderpad=1,
        bgcolor=_veil(palette),
        font={"color": colour, "size": 14},
    )


def _mark_solved(figure: go.Figure, step: int, last: int, palette: Palette) -> None:
    """The step at which the task was solved; its name stands on the side where there is more room."""
    early = step < last / 2
    figure.add_vline(x=step, line={"color": palette.right, "width": 2})
    figure.add_annotation(
        x=step,
        xanchor="left" if early else "right",
        xshift=6 if early else -6,
        y=0.62,
        yref="paper",
        yanchor="middle",
        text=f"✓ solved at {step}",
        showarrow=False,
        borderpad=1,
        bgcolor=_veil(palette),
        font={"color": palette.right, "size": 14},
    )


def _veil(palette: Palette) -> str:
    """The background, a little transparent: what a name stands on where lines may pass."""
    r, g, b = rgb(palette.background)
    return f"rgba({r},{g},{b},0.8)"


def _round_up(step: int) -> int:
    """A step count, rounded up to 1, 1.5, 2, 3, … times a power of ten, so that the axis moves seldom."""
    power = 10 ** max(1, len(str(step)) - 1)
    return next(int(power * f) for f in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step <= power * f)
