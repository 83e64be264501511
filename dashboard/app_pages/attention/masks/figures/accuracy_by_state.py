"""Three pictures in one: accuracy by position in several states, side by side, each before its ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import interval_bars
from dashboard.figures.kit.numbers import between
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, template

GAP = 0.035
"""Between two pictures, as a share of the whole width."""
MOST_TICKS = 5
"""Names under one picture, so that they do not touch in a narrow window."""


@dataclass(frozen=True)
class State:
    """How right a model is in one state; float [target]. Without an accuracy the ceiling stands alone."""

    title: str
    ceiling: np.ndarray
    accuracy: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    sequences: int = 0


def accuracy_by_state_bars(
    states: Sequence[State], chance: float, labels: Sequence[str], *, target: int, palette: Palette = LIGHT
) -> go.Figure:
    """One picture a state: bars of what was measured before the pale steps of what can be had. 95 % intervals.

    A click on a bar says its position, from 0, as customdata; that of `target` is outlined in every picture.
    """
    places, width = np.arange(len(labels)), (1 - GAP * (len(states) - 1)) / len(states)
    traces: list[dict[str, object]] = []
    titles: list[dict[str, object]] = []
    axes: dict[str, dict[str, object]] = {}
    for number, state in enumerate(states):
        suffix = "" if number == 0 else str(number + 1)
        on = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        start = number * (width + GAP)
        traces += _ceiling(places, state, labels, on, palette)
        if state.accuracy is not None:
            traces.append(_bars(places, state, labels, on, target, palette, last=number == len(states) - 1))
        traces.append(_guessing(len(places), chance, number, on, palette))
        titles.append(_title(state, start + width / 2, palette))
        axes[f"xaxis{suffix}"] = _positions(labels, target, [start, start + width], f"y{suffix}")
        axes[f"yaxis{suffix}"] = _level(number == 0, f"x{suffix}")
    layout = {
        "template": template(palette),
        **axes,
        "annotations": [*titles, _chance_name(chance, palette)],
        "showlegend": False,
        "barmode": "overlay",
        "bargap": 0,
        "dragmode": False,
        "margin": {"t": 66, "r": 8, "l": 8, "b": 8},
        "meta": {"tokens": {"x": list(labels)}},
    }
    return go.Figure(traces, layout)


def _guessing(n: int, chance: float, number: int, on: dict[str, str], palette: Palette) -> dict[str, object]:
    """The line of chance, across one picture."""
    return {
        "type": "scatter",
        "x": [-0.5, n - 0.5],
        "y": [chance, chance],
        "mode": "lines",
        **on,
        "line": {"color": palette.chance, "width": 2, "dash": "dot"},
        "hoverinfo": "skip",
        "name": f"chance {number + 1}",
    }


def _title(state: State, middle: float, palette: Palette) -> dict[str, object]:
    return {
        "x": middle,
        "xref": "paper",
        "xanchor": "center",
        "y": 1.0,
        "yref": "paper",
        "yanchor": "bottom",
        "yshift": 6,
        "showarrow": False,
        "text": f"<b>{safe(state.title)}</b>".replace("\n", "<br>").replace(
            ", ", ",<br>"
        ),  # a phone's pictures are narrow
        "font": {"size": 15, "color": palette.text},
    }


def _chance_name(chance: float, palette: Palette) -> dict[str, object]:
    return {
        "x": 0,
        "xref": "x domain",
        "y": chance,
        "yref": "y",
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "text": f"chance {chance:.2f}",
        "font": {"size": 14, "color": palette.chance},
        "bgcolor": palette.background,
        "opacity": 0.9,
    }


def _ceiling(
    places: np.ndarray, state: State, labels: Sequence[str], on: dict[str, str], palette: Palette
) -> list[dict[str, object]]:
    """The step area of what can be had, with its rim."""
    area = {
        "type": "bar",
        "x": places,
        "y": state.ceiling.astype(np.float32),
        "width": 1.0,
        **on,
        "marker": {"color": palette.scale[1], "opacity": 0.35, "line": {"width": 0}},
        "customdata": [int(place) for place in places],
        "hovertext": [f"position {i + 1} ({safe(labels[i])}): the ceiling is {state.ceiling[i]:.2f}" for i in places],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": f"ceiling: {state.title}",
    }
    edges = np.repeat(np.arange(len(places) + 1) - 0.5, 2)[1:-1]
    rim = {
        "type": "scatter",
        "x": edges.astype(np.float32),
        "y": np.repeat(state.ceiling, 2).astype(np.float32),
        "mode": "lines",
        **on,
        "line": {"color": palette.ceiling, "width": 2},
        "hoverinfo": "skip",
        "cliponaxis": False,
        "name": f"rim: {state.title}",
    }
    return [area, rim]


def _bars(
    places: np.ndarray,
    state: State,
    labels: Sequence[str],
    on: dict[str, str],
    target: int,
    palette: Palette,
    *,
    last: bool,
) -> dict[str, object]:
    accuracy, low, high = state.accuracy, state.low, state.high
    assert accuracy is not None
    assert low is not None
    assert high is not None
    return {
        "type": "bar",
        "x": places,
        "y": accuracy.astype(np.float32),
        "width": 0.66,
        **on,
        "marker": {
            "color": palette.right if last else palette.measured,
            "line": {"color": palette.text, "width": [3 if place == target else 0 for place in places]},
        },
        "error_y": interval_bars(accuracy, low, high, palette.text, width=2),
        "customdata": [int(place) for place in places],
        "hovertext": [
            f"{safe(state.title)}<br>position {i + 1} ({safe(labels[i])}): {accuracy[i]:.3f} right in "
            f"{state.sequences:,} sequences, {between(low[i], high[i])}<br>"
            f"ceiling {state.ceiling[i]:.2f} · click: what reaches it?"
            for i in places
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": state.title,
    }


def _positions(labels: Sequence[str], target: int, domain: list[float], anchor: str) -> dict[str, object]:
    """The axis of positions: some names, and always the chosen one's, in bold."""
    every = -(-len(labels) // MOST_TICKS)
    shown = sorted({place for place in range(0, len(labels), every) if abs(place - target) >= every * 0.75} | {target})
    return {
        "domain": domain,
        "anchor": anchor,
        "tickmode": "array",
        "tickvals": shown,
        "ticktext": [f"<b>{safe(labels[i])}</b>" if i == target else safe(labels[i]) for i in shown],
        "tickangle": 0,
        "showgrid": False,
        "range": [-0.6, len(labels) - 0.4],
        "fixedrange": True,
    }


def _level(first: bool, anchor: str) -> dict[str, object]:
    return {
        "range": [0, 1.08],
        "tickvals": [0, 0.25, 0.5, 0.75, 1],
        "showticklabels": first,
        "title": {"text": "accuracy" if first else ""},
        "anchor": anchor,
        "fixedrange": True,
    }
