"""Accuracy by position: measured bars before their ceiling, above chance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import plotly.graph_objects as go

from dashboard.theme import LIGHT, Palette, template

MOST_VALUES = 20
"""More bars than this, and the numbers above them would touch."""


def accuracy_by_position_bars(
    accuracy: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    ceiling: np.ndarray,
    chance: float,
    labels: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    before: np.ndarray | None = None,
    leaks: np.ndarray | None = None,
    sequences: int | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """All arrays float [target]. `low` and `high` bound the 95 % interval; nan where nothing is measured yet.

    The ceiling is a wide, open bar behind the measured one. `leaks`, bool [target], are the positions that are right
    more often than they can honestly be: their bars are hatched.
    """
    places = np.arange(len(labels))
    figure = go.Figure()
    figure.add_bar(
        x=places,
        y=ceiling.astype(np.float32),
        width=0.9,
        marker={"color": palette.surface, "line": {"color": palette.muted, "width": 1}},
        hoverinfo="skip",
        name="ceiling",
    )
    if before is not None:
        figure.add_bar(
            x=places - 0.19,
            y=before.astype(np.float32),
            width=0.34,
            marker={"color": palette.before},
            text=[f"position {i + 1} ({labels[i]}): {before[i]:.3f} before" for i in places],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
            name="before",
        )
    offset, width = (0.19, 0.34) if before is not None else (0.0, 0.62)
    hatched = np.zeros(len(labels), dtype=bool) if leaks is None else leaks
    figure.add_bar(
        x=places + offset,
        y=accuracy.astype(np.float32),
        width=width,
        marker={
            "color": palette.measured,
            "pattern": {"shape": ["x" if leak else "" for leak in hatched], "fgcolor": palette.wrong, "size": 6},
        },
        error_y={
            "array": np.maximum(high - accuracy, 0).astype(np.float32),
            "arrayminus": np.maximum(accuracy - low, 0).astype(np.float32),
            "color": palette.text,
            "thickness": 1.2,
            "width": 3,
            "visible": sequences is not None,
        },
        text=[_sentence(i, labels, accuracy, low, high, ceiling, chance, sequences) for i in places],
        textposition="none",
        hovertemplate="%{text}<extra></extra>",
        name="after" if before is not None else "measured",
    )
    if len(labels) <= MOST_VALUES and before is None:
        _values(figure, places, accuracy, high, palette)
    figure.add_hline(y=chance, line={"color": palette.chance, "width": 2, "dash": "dot"})
    figure.update_layout(
        template=template(palette),
        barmode="overlay",
        bargap=0,
        xaxis={
            "tickmode": "array",
            "tickvals": _sparse(places),
            "ticktext": [labels[i] for i in _sparse(places)],
            "tickangle": 0,
            "showgrid": False,
            "range": [-0.6, len(labels) - 0.4],
            "title": {"text": "target"},
        },
        yaxis={"range": [0, 1.13], "tickvals": [0, 0.25, 0.5, 0.75, 1], "title": {"text": "accuracy"}},
        legend={"y": 1.12 if groups else 1.02, "traceorder": "normal"},
        margin={"t": 30},
    )
    figure.add_scatter(
        x=[None],
        y=[None],
        mode="lines",
        line={"color": palette.chance, "width": 2, "dash": "dot"},
        name=f"chance {chance:.2f}",
    )
    if groups is not None:
        _name_groups(figure, groups, palette)
    return figure


def _values(
    figure: go.Figure, places: np.ndarray, accuracy: np.ndarray, high: np.ndarray, palette: Palette
) -> None:
    """The numbers, above the bars and their intervals."""
    shown = np.isfinite(accuracy)
    top = np.where(np.isfinite(high), np.maximum(high, accuracy), accuracy)
    figure.add_scatter(
        x=places[shown],
        y=top[shown].astype(np.float32),
        mode="text",
        text=[f"{value:.2f}" for value in accuracy[shown]],
        textposition="top center",
        textfont={"size": 12 if len(places) > 12 else 14, "color": palette.text},
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
        name="values",
    )


def _name_groups(figure: go.Figure, groups: Sequence[str], palette: Palette) -> None:
    """The parts of the sequence, named above their bars and parted by thin lines."""
    start = 0
    for name, members in groupby(groups):
        count = len(list(members))
        if start:
            figure.add_vline(x=start - 0.5, line={"color": palette.muted, "width": 1, "dash": "dash"})
        if count > 1 or len(groups) == 1:
            figure.add_annotation(
                x=start + (count - 1) / 2,
                y=1.02,
                yref="paper",
                yanchor="bottom",
                text=name,
                showarrow=False,
                font={"size": 13, "color": palette.muted},
            )
        start += count


def _sparse(places: np.ndarray) -> list[int]:
    """At most some thirty tick labels."""
    return [int(i) for i in places[:: -(-len(places) // 32)]]


def _sentence(
    i: int,
    labels: Sequence[str],
    accuracy: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    ceiling: np.ndarray,
    chance: float,
    sequences: int | None,
) -> str:
    within = f" in {sequences:,} sequences, 95 % interval {low[i]:.3f} to {high[i]:.3f}" if sequences else ""
    return (
        f"position {i + 1} ({labels[i]}): {accuracy[i]:.3f} right{within}<br>"
        f"ceiling {ceiling[i]:.2f}, chance {chance:.2f}"
    )
