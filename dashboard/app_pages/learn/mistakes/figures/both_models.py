"""A model with a mistake and one with the right code, in one figure: accuracy by position, and the loss as it falls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.accuracy import accuracy_by_position_bars, position_bars
from dashboard.figures.kit.token_axis import lines_of
from dashboard.figures.loss import loss_axes, loss_curve
from dashboard.theme import LIGHT, Palette

WRONG, RIGHT = "with the mistake", "right code"


def both_accuracies(
    wrong: np.ndarray,
    right: np.ndarray,
    interval: tuple[np.ndarray, np.ndarray],
    ceiling: np.ndarray,
    chance: float,
    labels: Sequence[str],
    *,
    groups: Sequence[str],
    leaks: np.ndarray,
    sequences: int,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Accuracy by position of both, float [target], before the ceiling: open bars are the right code's.

    `interval` bounds that of the mistake. `leaks`, bool [target], are the positions at which the model with the
    mistake is above the ceiling: their bars are hatched.
    """
    figure = accuracy_by_position_bars(
        wrong,
        *interval,
        ceiling,
        chance,
        labels,
        groups=groups,
        before=right,
        leaks=leaks,
        sequences=sequences,
        palette=palette,
    )
    said = [
        lines_of(f"position {i + 1} ({label}): {share:.3f} right with the right code")
        for i, (label, share) in enumerate(zip(labels, right, strict=True))
    ]
    return figure.update_traces({"name": RIGHT, "hovertext": said}, selector={"name": "before"}).update_traces(
        {"name": WRONG}, selector={"name": "after"}
    )


def both_losses(
    steps: np.ndarray,
    wrong: np.ndarray,
    right: np.ndarray,
    *,
    floor: float,
    chance: float,
    palette: Palette = LIGHT,
) -> go.Figure:
    """The loss of both in nats by step, int and float [step], above the floor that no causal model passes."""
    figure = loss_curve(steps, wrong, floor=floor, chance=chance, palette=palette)
    _, nats = loss_axes(steps, np.concatenate([wrong, right]), floor=floor, chance=chance)
    other = {
        "type": "scatter",
        "x": steps,
        "y": right.astype(np.float32),
        "mode": "lines",
        "line": {"color": palette.muted, "width": 2, "dash": "dash"},
        "hovertemplate": f"step %{{x}}: loss %{{y:.3f}} nats, {RIGHT}<extra></extra>",
        "name": RIGHT,
    }
    figure.update_traces({"name": WRONG}, selector={"name": "measured"})
    figure.update_traces({"showlegend": False}, selector={"name": "now"})
    figure.add_trace(other)
    legend = {"y": 1.0, "yanchor": "bottom", "x": 0.5, "xanchor": "center", "entrywidth": 0, "font": {"size": 14}}
    return figure.update_layout(showlegend=True, legend=legend, yaxis_range=nats, margin_t=34)


def change_bars(
    values: np.ndarray,
    names: Sequence[str],
    *,
    against: str,
    title: str,
    sentences: Sequence[str],
    palette: Palette = LIGHT,
) -> go.Figure:
    """How far the output at each position moves, float [position]; `title` says what is measured there."""
    return position_bars(
        values,
        names,
        sentences,
        title=title,
        against=(0.0, against),
        across="position",
        top=1.12 * float(values.max(initial=0.0)) or 1.0,
        palette=palette,
    )
