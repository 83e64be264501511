"""What order does to attention: its output for two orders of the same tokens; answers with positions and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.accuracy import LINE_OF_TEXT, SHARES, TOP, ceiling_columns
from dashboard.figures.html.number_table import shaded
from dashboard.figures.kit.lines import end_name, interval_bars, level
from dashboard.figures.kit.numbers import written
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, colour_scale, template

GAP = 0.03
"""Between two panels, as a share of the width."""


@dataclass(frozen=True)
class Panel:
    """One model's attention output: its name, and float [order, number]."""

    name: str
    values: np.ndarray


@dataclass(frozen=True)
class Bars:
    """One model's accuracy token by token, float [target] each, with the bounds of its 95 % interval."""

    name: str
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def two_orders_heatmap(
    panels: Sequence[Panel], *, orders: Sequence[str], numbers: Sequence[int], title: str, palette: Palette = LIGHT
) -> go.Figure:
    """Panels side by side, a row for each of the two `orders`; `numbers` are the numbers of the output that are shown.

    `title` says which these are. Look for two rows that are the same.
    """
    limit = max(float(np.abs(panel.values).max()) for panel in panels) or 1.0
    width = (1 + GAP) / len(panels) - GAP
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"template": template(palette), "margin": {"t": 28, "l": 8, "r": 4, "b": 8}}
    layout |= {"showlegend": False, "annotations": []}
    columns, rows = np.arange(len(numbers)), np.arange(len(orders))
    for place, panel in enumerate(panels):
        index, left = "" if place == 0 else str(place + 1), place * (width + GAP)
        axes = {"xaxis": f"x{index}", "yaxis": f"y{index}"}
        cells = {
            "type": "heatmap",
            "z": panel.values.astype(np.float32),
            "zmin": -limit,
            "zmax": limit,
            "colorscale": colour_scale(palette.signed),
            "showscale": False,
            "xgap": 2,
            "ygap": 6,
            "text": [
                [f"{safe(order)}: number {n} is {written(value, 4)}" for n, value in zip(numbers, row, strict=True)]
                for order, row in zip(orders, panel.values.tolist(), strict=True)
            ],
            "hovertemplate": "%{text}<extra>" + safe(panel.name) + "</extra>",
            "name": panel.name,
        }
        texts = {
            "type": "scatter",
            "x": np.tile(columns, len(rows)),
            "y": np.repeat(rows, len(columns)),
            "mode": "text",
            "text": [written(float(value), 2) for value in panel.values.ravel()],
            "textfont": {
                "size": 14,
                "color": [shaded(float(v) / limit, palette.signed, signed=True)[1] for v in panel.values.ravel()],
            },
            "hoverinfo": "skip",
            "name": "numbers",
        }
        traces += [cells | axes, texts | axes]
        layout[f"xaxis{index}"] = {
            "domain": [left, left + width],
            "anchor": f"y{index}",
            "tickvals": columns.tolist(),
            "ticktext": [str(number) for number in numbers],
            "title": {"text": title},
            "range": [-0.5, len(numbers) - 0.5],
            "showgrid": False,
            "ticks": "",
        }
        layout[f"yaxis{index}"] = {
            "anchor": f"x{index}",
            "tickvals": rows.tolist(),
            "ticktext": [f"{safe(order)} " for order in orders],
            "tickfont": {"size": 15},
            "range": [len(orders) - 0.5, -0.5],
            "showgrid": False,
            "ticks": "",
            "showticklabels": place == 0,
        }
        layout["annotations"].append(
            {
                "x": 0.5,
                "xref": f"x{index} domain",
                "y": 1,
                "yref": "paper",
                "yanchor": "bottom",
                "text": f"<b>{safe(panel.name)}</b>",
                "showarrow": False,
                "font": {"size": 15, "color": palette.text},
            }
        )
    return go.Figure(traces, layout)


def bag_bars(
    models: Sequence[Bars], *, ceiling: np.ndarray, chance: float, names: Sequence[str], palette: Palette = LIGHT
) -> go.Figure:
    """Bars of each model side by side before the `ceiling` of a bag, float [target], above a dotted line at `chance`.

    Look for bars of the one model that pass the ceiling, and for those of the other, which do not.
    """
    places, width = np.arange(len(names)), 0.8 / len(models)
    column, rim = ceiling_columns(places, ceiling, palette)
    traces: list[dict[str, Any]] = [column, rim | {"name": "ceiling: best guess without order", "showlegend": True}]
    for place, model in enumerate(models):
        x = places - 0.4 + (place + 0.5) * width
        known, tops = np.isfinite(model.mean), np.fmax(model.mean, model.high)
        tops = np.where((tops < ceiling) & (tops > ceiling - LINE_OF_TEXT), ceiling, tops)  # the rim runs there
        traces.append(
            {
                "type": "bar",
                "x": x,
                "y": model.mean.astype(np.float32),
                "width": 0.94 * width,
                "marker": {"color": (palette.measured, palette.before)[place]},
                "error_y": interval_bars(model.mean, model.low, model.high, palette.text),
                "hovertext": [
                    f"{safe(model.name)}, {name}: {share:.3f} right<br>ceiling {most:.2f}"
                    for name, share, most in zip(names, model.mean, ceiling, strict=True)
                ],
                "hovertemplate": "%{hovertext}<extra></extra>",
                "name": model.name,
            }
        )
        traces.append(
            {
                "type": "scatter",
                "x": x[known],
                "y": (tops[known] + 0.01).astype(np.float32),
                "mode": "text",
                "text": [f"{share:.2f}" for share in model.mean[known]],
                "textposition": "top center",
                "textfont": {"size": 13, "color": palette.text},
                "hoverinfo": "skip",
                "showlegend": False,
                "cliponaxis": False,
                "meta": {"least_width": 110 + 26 * len(models) * len(names)},
                "name": f"numbers, {model.name}",
            }
        )
    layout = {
        "template": template(palette),
        "barmode": "overlay",
        "bargap": 0,
        "xaxis": {
            "tickvals": places.tolist(),
            "ticktext": [safe(name) for name in names],
            "tickfont": {"size": 14},
            "range": [-0.55, len(names) - 0.45],
            "showgrid": False,
            "title": {"text": f"token of the answer, {names[0]} the first, {names[-1]} the last"},
        },
        "yaxis": {"range": [0, TOP], **SHARES, "title": {"text": "accuracy"}},
        "shapes": [level(chance, {"color": palette.chance, "width": 2, "dash": "dot"})],
        "annotations": [end_name(chance, f"chance<br>{chance:.2f}", palette.chance)],
        "legend": {"font": {"size": 14}, "x": 0, "y": 1.02, "entrywidth": 0},
        "margin": {"t": 28, "r": 58},
        "meta": {"tokens": {"x": list(names)}},
    }
    return go.Figure(traces, layout)
