"""How good at each position, as bars: of a law accuracy, before its ceiling and above chance; of a text the cost of a
token, against what needs no context.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import end_name, interval_bars, level, upright
from dashboard.figures.kit.numbers import between
from dashboard.figures.kit.token_axis import lines_of, safe
from dashboard.theme import LIGHT, Palette, template

MOST_VALUES = 20
"""More bars than this, and the numbers above them would touch."""
MOST_FULL_VALUES = 10
"""More bars than this, and the numbers lose a figure: .10 and 1.0 in place of 0.10 and 1.00."""
MOST_PLACES = 12
"""More places of a window than this, and their numbers, which lose no figure, would touch."""
TOP, LINE_OF_TEXT = 1.1, 0.09
"""The end of an axis of accuracy, and the height of a number above a bar there."""
SHARES = {"tickvals": [0, 0.25, 0.5, 0.75, 1]}
"""The ticks of an axis of shares."""


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

    `leaks`, bool [target], are the positions that are right more often than they can honestly be: their bars are
    hatched and their numbers carry a ✕.
    """
    called = [f"position {i + 1} ({label})" for i, label in enumerate(labels)]
    within = [
        f" in {sequences:,} sequences, {between(a, b)}" if sequences else "" for a, b in zip(low, high, strict=True)
    ]
    return position_bars(
        accuracy,
        labels,
        [
            f"{name}: {share:.3f} right{interval}\nceiling {most:.2f}, chance {chance:.2f}"
            for name, share, interval, most in zip(called, accuracy, within, ceiling, strict=True)
        ],
        title="accuracy",
        against=(chance, "chance"),
        interval=None if sequences is None else (low, high),
        before=before,
        once=[
            f"{name}: {share:.3f} right before"
            for name, share in zip(called, accuracy if before is None else before, strict=True)
        ],
        top=TOP,
        ceiling=ceiling,
        groups=groups,
        leaks=leaks,
        palette=palette,
    )


def position_bars(
    values: np.ndarray,
    names: Sequence[str],
    sentences: Sequence[str],
    *,
    title: str,
    against: tuple[float, str],
    interval: tuple[np.ndarray, np.ndarray] | None = None,
    before: np.ndarray | None = None,
    once: Sequence[str] | None = None,
    top: float | None = None,
    ceiling: np.ndarray | None = None,
    groups: Sequence[str] | None = None,
    leaks: np.ndarray | None = None,
    across: str = "",
    palette: Palette = LIGHT,
) -> go.Figure:
    """What was measured, float [position], with a sentence for each. `across` is the name of the horizontal axis.

    A dotted line stands at `against`, a height and its name. `interval` are the bounds of the 95 % interval, `before`
    is what it was before a change (open bars, with the sentences `once`), `top` the end of the axis where it is known
    beforehand. The `ceiling`, of a law, is a wide, open bar with a thick rim behind the measured one: look for bars
    that do not fill it.
    """
    places, few = np.arange(len(names)), MOST_PLACES if ceiling is None else MOST_VALUES
    leaks = np.zeros(len(names), dtype=bool) if leaks is None else leaks
    spans = _spans(groups or ())
    offset, width = (0.0, 0.62) if before is None else (0.19, 0.34)
    low, high = (values, values) if interval is None else interval
    highest = np.fmax(values, high)
    if top is None:
        top = 1.12 * max(against[0], *(np.nanmax(each, initial=0.0) for each in (highest, before) if each is not None))
    traces = [] if ceiling is None else ceiling_columns(places, ceiling, palette)
    if before is not None:
        traces.append(_before(places - offset, width, before, once or names, palette))
    measured = {
        "type": "bar",
        "x": places + offset,
        "y": values.astype(np.float32),
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
        "error_y": interval_bars(values, low, high, palette.text)
        | {"visible": interval is not None and bool(np.isfinite(high).any())},
        "hovertext": [lines_of(sentence) for sentence in sentences],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "after" if before is not None else "measured",
    }
    traces.append(measured)
    if len(names) <= few and before is None:
        lines = [np.full(len(places), against[0]), *([] if ceiling is None else [ceiling])]
        traces.append(_values(places, values, highest, lines, top / TOP, leaks, palette, full=ceiling is None))
    both = before is not None and groups is not None
    room = 48 if both else 22 if groups is not None else 6
    if ceiling is None:
        room = 22 if before is None else 40
    layout = {
        "template": template(palette),
        "barmode": "overlay",
        "bargap": 0,
        "xaxis": _positions(names, window=ceiling is None and not across)
        | ({"title": {"text": across}} if across else {}),
        "yaxis": {"range": [0, top], **(SHARES if ceiling is not None else {"nticks": 6}), "title": {"text": title}},
        "shapes": [level(against[0], {"color": palette.chance, "width": 2, "dash": "dot"}), *_partings(spans, palette)],
        "annotations": [*_level_names(against, ceiling, palette), *_span_names(spans, palette)],
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
        "margin": {"t": room, "r": 58 if ceiling is not None else 84},
        "meta": {"tokens": {"x": list(names)}},
    }
    return go.Figure(traces, layout)


def _positions(names: Sequence[str], *, window: bool) -> dict[str, object]:
    """The axis of positions: one tick each while there is room; of a window, whose stretches are few, always."""
    step = 1 if window else -(-len(names) // 20)
    shown = list(range(0, len(names), step))
    return {
        "tickmode": "array",
        "tickvals": shown,
        "ticktext": [safe(names[i]) for i in shown],
        "tickangle": 0 if window else None,
        "tickfont": {"size": 14 if len(names) <= 10 else 13 if step == 1 and not window else 12},
        "showgrid": False,
        "range": [-0.55, len(names) - 0.45],
        "title": {"text": "place in the window" if window else "target"},
    }


def ceiling_columns(places: np.ndarray, ceiling: np.ndarray, palette: Palette) -> list[dict[str, object]]:
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
    places: np.ndarray, width: float, values: np.ndarray, sentences: Sequence[str], palette: Palette
) -> dict[str, object]:
    """Open bars: what it was before a change."""
    return {
        "type": "bar",
        "x": places,
        "y": values.astype(np.float32),
        "width": width,
        "marker": {"color": palette.surface, "line": {"color": palette.muted, "width": 1.5}},
        "hovertext": [lines_of(sentence) for sentence in sentences],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "before",
    }


def _values(
    places: np.ndarray,
    values: np.ndarray,
    tops: np.ndarray,
    lines: Sequence[np.ndarray],
    scale: float,
    leaks: np.ndarray,
    palette: Palette,
    *,
    full: bool,
) -> dict[str, object]:
    """The numbers, above the bars and their intervals, and above a line that would run through them."""
    shown, full = np.isfinite(values), full or len(places) <= MOST_FULL_VALUES
    for line in lines:
        tops = np.where((tops < line) & (tops > line - LINE_OF_TEXT * scale), line, tops)
    return {
        "type": "scatter",
        "x": places[shown],
        "y": (tops[shown] + 0.01 * scale).astype(np.float32),
        "mode": "text",
        "text": [
            f"<b>✕ {_short(value, full)}</b>" if leak else _short(value, full)
            for value, leak in zip(values[shown], leaks[shown], strict=True)
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


def _level_names(against: tuple[float, str], ceiling: np.ndarray | None, palette: Palette) -> list[dict[str, object]]:
    """The reference and the ceiling, named at the right end of their lines while the names do not touch."""
    value, name = against
    names = [end_name(value, f"{lines_of(name)}<br>{value:.2f}", palette.chance)]
    if ceiling is not None and abs(ceiling[-1] - value) >= 3 * LINE_OF_TEXT:
        names.append(end_name(float(ceiling[-1]), "ceiling", palette.ceiling))
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
