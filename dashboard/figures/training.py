"""Curves of training, each with the lines it is to be read against."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

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
    """Loss in nats by step, int and float [step], between guessing (`chance`) and what no model gets below (`floor`)."""
    figure = go.Figure()
    figure.add_scatter(
        x=steps,
        y=loss.astype(np.float32),
        mode="lines+markers" if len(steps) == 1 else "lines",
        line={"color": palette.measured, "width": 2.5},
        hovertemplate="step %{x}: loss %{y:.3f} nats<extra></extra>",
        name="loss",
    )
    _line(figure, chance, f"guessing {chance:.2f}", "dot", palette.chance, "right")
    _line(figure, floor, f"floor {floor:.2f}", "dash", palette.ceiling, "left")
    if solved_at is not None and len(steps):
        figure.add_vline(x=solved_at, line={"color": palette.right, "width": 1.5})
        figure.add_annotation(
            x=solved_at,
            y=0.5,
            yref="paper",
            yanchor="middle",
            xanchor="right",
            text=f"✓ solved at {solved_at} ",
            showarrow=False,
            font={"color": palette.right, "size": 14},
        )
    if not len(steps):
        figure.add_annotation(
            x=0.5, y=0.5, xref="paper", yref="paper", text="waiting for the first step", showarrow=False
        )
    # The range only ever grows with the data, and has room under the floor for its label.
    top = max(chance * 1.12, float(loss.max()) * 1.03 if len(loss) else 0.0)
    figure.update_layout(
        template=template(palette),
        showlegend=False,
        xaxis={"title": {"text": "step"}, "range": [0, _round_up(int(steps[-1]) if len(steps) else 10)]},
        yaxis={"title": {"text": "loss (nats)"}, "range": [-0.04 * top, top]},
    )
    return figure


def _line(figure: go.Figure, y: float, text: str, dash: str, colour: str, side: str) -> None:
    """A level with its name on the side where the curve is not: it starts high on the left and ends low on the right."""
    figure.add_hline(y=y, line={"color": colour, "width": 1.5, "dash": dash})
    figure.add_annotation(
        x=0.01 if side == "left" else 0.99,
        xref="paper",
        xanchor=side,
        y=y,
        yanchor="bottom",
        text=text,
        showarrow=False,
        font={"color": colour, "size": 13},
    )


def _round_up(step: int) -> int:
    """A step count, rounded up to 1, 1.5, 2, 3, 5 or 7 times a power of ten, so that the axis moves seldom."""
    power = 10 ** max(1, len(str(step)) - 1)
    return next(int(power * f) for f in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step <= power * f)
