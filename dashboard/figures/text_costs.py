"""The cost of a text by place, as bars before the line of what needs no context."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import end_name, level
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, template

MOST_VALUES = 12
"""More bars than this, and the numbers above them would touch."""


def place_bars(
    values: np.ndarray,
    names: Sequence[str],
    sentences: Sequence[str],
    *,
    title: str,
    against: tuple[float, str],
    half: tuple[np.ndarray, np.ndarray] | None = None,
    before: np.ndarray | None = None,
    most: float | None = None,
    across: str = "place in the window",
    palette: Palette = LIGHT,
) -> go.Figure:
    """Bars for the stretches of a window: float [stretch], nan where there is none, each with a sentence.

    A dotted line stands at `against`, a height and its name. `half` is how far the 95 % interval reaches up and down,
    `before` what it was before a change (open bars), `most` the top of the axis where it is known beforehand.
    """
    places = np.arange(len(names))
    offset, width = (0.19, 0.34) if before is not None else (0.0, 0.66)
    highest = [values, values if half is None else values + half[0], values if before is None else before]
    top = most or 1.12 * max(against[0], *(float(np.nanmax(each, initial=0.0)) for each in highest))
    traces = [_bars(places + offset, width, values, sentences, half, palette)]
    if before is not None:
        traces.insert(0, _before(places - offset, width, before, names, palette))
    elif len(names) <= MOST_VALUES:
        traces.append(_numbers(places, highest[1], values, palette))
    layout = {
        "template": template(palette),
        "barmode": "overlay",
        "bargap": 0,
        "xaxis": {
            "tickmode": "array",
            "tickvals": places.tolist(),
            "ticktext": [_lines(name) for name in names],
            "tickfont": {"size": 14 if len(names) <= 10 else 12},
            "tickangle": 0,
            "showgrid": False,
            "range": [-0.55, len(names) - 0.45],
            "title": {"text": safe(across)},
        },
        "yaxis": {"range": [0, top], "nticks": 6, "title": {"text": safe(title)}},
        "shapes": [level(against[0], {"color": palette.chance, "width": 2, "dash": "dot"})],
        "annotations": [end_name(against[0], f"{_lines(against[1])}<br>{against[0]:.2f}", palette.chance)],
        "showlegend": before is not None,
        "legend": {"y": 1.0, "yanchor": "bottom", "x": 0.5, "xanchor": "center", "font": {"size": 14}},
        "margin": {"t": 22 if before is None else 40, "r": 84},
        "meta": {"tokens": {"x": [name.replace("-\n", "") for name in names]}},
    }
    return go.Figure(traces, layout)


def _lines(name: str) -> str:
    """A name of several lines."""
    return safe(name).replace("\n", "<br>")


def _bars(
    x: np.ndarray,
    width: float,
    values: np.ndarray,
    sentences: Sequence[str],
    half: tuple[np.ndarray, np.ndarray] | None,
    palette: Palette,
) -> dict[str, object]:
    up, down = half or (np.zeros(len(values)), np.zeros(len(values)))
    return {
        "type": "bar",
        "x": x,
        "y": values.astype(np.float32),
        "width": width,
        "marker": {"color": palette.measured},
        "error_y": {
            "array": np.nan_to_num(up).astype(np.float32),
            "arrayminus": np.nan_to_num(down).astype(np.float32),
            "color": palette.text,
            "thickness": 1.2,
            "width": 3,
            "visible": half is not None and bool(np.isfinite(up).any()),
        },
        "customdata": list(range(len(values))),
        "hovertext": [safe(sentence) for sentence in sentences],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "after" if half is None else "measured",
    }


def _before(
    x: np.ndarray, width: float, before: np.ndarray, names: Sequence[str], palette: Palette
) -> dict[str, object]:
    """Open bars: what it was before a change."""
    return {
        "type": "bar",
        "x": x,
        "y": before.astype(np.float32),
        "width": width,
        "marker": {"color": palette.surface, "line": {"color": palette.muted, "width": 1.5}},
        "hovertext": [f"place {safe(name)}: {value:.3f} before" for name, value in zip(names, before, strict=True)],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "before",
    }


def _numbers(places: np.ndarray, tops: np.ndarray, values: np.ndarray, palette: Palette) -> dict[str, object]:
    """The numbers, above the bars and their intervals; a cross where there is none."""
    return {
        "type": "scatter",
        "x": places,
        "y": np.nan_to_num(np.fmax(tops, values)).astype(np.float32),
        "mode": "text",
        "text": [f"{value:.2f}" if np.isfinite(value) else "✗" for value in values],
        "textposition": "top center",
        "textfont": {"size": 14, "color": palette.text},
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
        "meta": {"numbers": False, "least_width": 110 + 42 * len(places)},
        "name": "values",
    }
