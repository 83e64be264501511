"""Accuracy by position: measured bars before their ceiling, above chance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import end_name, level, upright
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, template

MOST_VALUES = 20
"""More bars than this, and the numbers above them would touch."""
MOST_FULL_VALUES = 10
"""More bars than this, and the numbers lose a figure: .10 and 1.0 in place of 0.10 and 1.00."""
LINE_OF_TEXT = 0.09
"""The height of a number above a bar, as a share of the axis."""


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

    The ceiling is a wide, open bar with a thick rim behind the measured one: look for bars that do not fill it.
    `leaks`, bool [target], are the positions that are right more often than they can honestly be: their bars are
    hatched and their numbers carry a ✗.
    """
    places = np.arange(len(labels))
    leaks = np.zeros(len(labels), dtype=bool) if leaks is None else leaks
    names = [safe(label) for label in labels]
    spans = _spans(groups or ())
    offset, width = (0.19, 0.34) if before is not None else (0.0, 0.62)
    traces = _ceiling(places, ceiling, palette)
    if before is not None:
        traces.append(_before(places - offset, width, before, names, palette))
    measured = {
        "type": "bar",
        "x": places + offset,
        "y": accuracy.astype(np.float32),
        "width": width,
        "marker": {
            "color": [palette.wrong if leak else palette.measured for leak in leaks],
            "pattern": {
                "shape": ["x" if leak else "" for leak in leaks],
                "fillmode": "overlay",
                "bgcolor": palette.wrong,
                "fgcolor": palette.background,
                "size": 7,
            },
        },
        "error_y": {
            "array": np.maximum(high - accuracy, 0).astype(np.float32),
            "arrayminus": np.maximum(accuracy - low, 0).astype(np.float32),
            "color": palette.text,
            "thickness": 1.2,
            "width": 3,
            "visible": sequences is not None,
        },
        "hovertext": [_sentence(i, names, accuracy, low, high, ceiling, chance, sequences) for i in range(len(names))],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "after" if before is not None else "measured",
    }
    traces.append(measured)
    if len(labels) <= MOST_VALUES and before is None:
        traces.append(_values(places, accuracy, high, ceiling, chance, leaks, palette))
    both = before is not None and groups is not None
    layout = {
        "template": template(palette),
        "barmode": "overlay",
        "bargap": 0,
        "xaxis": _positions(names),
        "yaxis": {"range": [0, 1.1], "tickvals": [0, 0.25, 0.5, 0.75, 1], "title": {"text": "accuracy"}},
        "shapes": [level(chance, {"color": palette.chance, "width": 2, "dash": "dot"}), *_partings(spans, palette)],
        "annotations": [*_level_names(float(ceiling[-1]), chance, palette), *_span_names(spans, palette)],
        "showlegend": before is not None,
        "legend": {
            "y": 1.0,
            "yref": "container" if both else None,
            "yanchor": "top" if both else "bottom",
            "entrywidth": 0,
            "x": 0.5,
            "xanchor": "center",
            "font": {"size": 14},
        },
        "margin": {"t": 48 if both else 22 if groups is not None else 6, "r": 58},
        "meta": {"tokens": {"x": list(labels)}},
    }
    return go.Figure(traces, layout)


def _positions(names: Sequence[str]) -> dict[str, object]:
    """The axis of positions: one tick each while there is room."""
    step = -(-len(names) // 20)
    shown = list(range(0, len(names), step))
    return {
        "tickmode": "array",
        "tickvals": shown,
        "ticktext": [names[i] for i in shown],
        "tickangle": None,
        "tickfont": {"size": 14 if len(names) <= 10 else 13 if step == 1 else 12},
        "showgrid": False,
        "range": [-0.55, len(names) - 0.45],
        "title": {"text": "target"},
    }


def _ceiling(places: np.ndarray, ceiling: np.ndarray, palette: Palette) -> list[dict[str, object]]:
    """What is possible at each position: a pale column up to a thick rim."""
    few = len(places) <= MOST_VALUES
    half, none = 0.45 if few else 0.5, np.full(len(places), np.nan)
    column = {
        "type": "bar",
        "x": places,
        "y": ceiling.astype(np.float32),
        "width": 2 * half,
        "marker": {"color": palette.surface, "line": {"color": palette.grid, "width": 1 if few else 0}},
        "hoverinfo": "skip",
        "showlegend": False,
        "meta": {"numbers": True},
        "name": "ceiling",
    }
    rim = {
        "type": "scatter",
        "x": np.stack([places - half, places + half, none], axis=1).ravel().astype(np.float32),
        "y": np.stack([ceiling, ceiling, none], axis=1).ravel().astype(np.float32),
        "mode": "lines",
        "line": {"color": palette.ceiling, "width": 2.5},
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
        "name": "rim",
    }
    return [column, rim]


def _before(
    places: np.ndarray, width: float, accuracy: np.ndarray, names: Sequence[str], palette: Palette
) -> dict[str, object]:
    """Open bars: what was right before a change."""
    return {
        "type": "bar",
        "x": places,
        "y": accuracy.astype(np.float32),
        "width": width,
        "marker": {"color": palette.surface, "line": {"color": palette.muted, "width": 1.5}},
        "hovertext": [f"position {i + 1} ({name}): {accuracy[i]:.3f} right before" for i, name in enumerate(names)],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "before",
    }


def _values(
    places: np.ndarray,
    accuracy: np.ndarray,
    high: np.ndarray,
    ceiling: np.ndarray,
    chance: float,
    leaks: np.ndarray,
    palette: Palette,
) -> dict[str, object]:
    """The numbers, above the bars and their intervals, and above a line that would run through them."""
    shown = np.isfinite(accuracy)
    top = np.fmax(high, accuracy)
    for line in (np.full(len(places), chance), ceiling):
        top = np.where((top < line) & (top > line - LINE_OF_TEXT), line, top)
    full = len(places) <= MOST_FULL_VALUES
    return {
        "type": "scatter",
        "x": places[shown],
        "y": (top[shown] + 0.01).astype(np.float32),
        "mode": "text",
        "text": [
            f"<b>✗ {_short(value, full)}</b>" if leak else _short(value, full)
            for value, leak in zip(accuracy[shown], leaks[shown], strict=True)
        ],
        "textposition": "top center",
        "textfont": {
            "size": 14 if full else 13,
            "color": [palette.wrong if leak else palette.text for leak in leaks[shown]],
        },
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
        "meta": {"least_width": 110 + (26 if full else 20) * len(places)},
        "name": "values",
    }


def _short(value: float, full: bool) -> str:
    text = f"{value:.2f}"
    return text if full else "1.0" if text == "1.00" else text[1:]


def _level_names(ceiling: float, chance: float, palette: Palette) -> list[dict[str, object]]:
    """Chance and the ceiling, named at the right end of their lines while the names do not touch."""
    names = [end_name(chance, f"chance<br>{chance:.2f}", palette.chance)]
    if abs(ceiling - chance) >= 3 * LINE_OF_TEXT:
        names.append(end_name(ceiling, "ceiling", palette.ceiling))
    return names


def _spans(groups: Sequence[str]) -> list[tuple[str, int, int]]:
    """The parts of the sequence: the name, the first place and the last of each."""
    members = [list(run) for _, run in groupby(enumerate(groups), key=lambda member: member[1])]
    return [(run[0][1], run[0][0], run[-1][0]) for run in members]


def _partings(spans: Sequence[tuple[str, int, int]], palette: Palette) -> list[dict[str, object]]:
    """Thin lines between the parts."""
    line: dict[str, object] = {"color": palette.muted, "width": 1, "dash": "dash"}
    return [{**upright(first - 0.5, line), "layer": "below"} for _, first, _ in spans[1:]]


def _span_names(spans: Sequence[tuple[str, int, int]], palette: Palette) -> list[dict[str, object]]:
    """The parts named above their bars; a lone bar among others has no room for a name."""
    return [
        {
            "x": (first + last) / 2,
            "y": 1.0,
            "yref": "paper",
            "yanchor": "bottom",
            "text": safe(name),
            "showarrow": False,
            "font": {"size": 14, "color": palette.muted},
        }
        for name, first, last in spans
        if last > first or len(spans) == 1
    ]


def _sentence(
    i: int,
    names: Sequence[str],
    accuracy: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    ceiling: np.ndarray,
    chance: float,
    sequences: int | None,
) -> str:
    within = f" in {sequences:,} sequences, 95 % interval {low[i]:.3f} to {high[i]:.3f}" if sequences else ""
    return (
        f"position {i + 1} ({names[i]}): {accuracy[i]:.3f} right{within}<br>"
        f"ceiling {ceiling[i]:.2f}, chance {chance:.2f}"
    )
