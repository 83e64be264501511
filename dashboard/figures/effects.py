"""What edits do, as maps on the diverging scale: removals, pairs of removals, and patches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import bar_layout, scaled
from dashboard.figures.kit.labels import LABEL_ROOM, ink, name_axis
from dashboard.figures.kit.token_axis import safe, token_axis
from dashboard.theme import LIGHT, Palette, template

NUMBER_ROOM = 40
"""Pixels that a cell with a number needs."""
MOST_NUMBERED = 20
"""More columns than this, and numbers in the cells would touch."""


def removal_heatmap(
    drops: np.ndarray, layers: Sequence[str], removed: np.ndarray, *, palette: Palette = LIGHT
) -> go.Figure:
    """Accuracy lost without each head, float [layer, head], −1 to 1; a cross stands where `removed`, bool, is True.

    Dark means that the answer falls with this head alone. The first layer stands below, as the data goes.
    """
    heads = [str(head) for head in range(drops.shape[1])]
    sentences = [
        [
            f"{safe(layer)}, head {head}: removed, accuracy {'falls' if drop >= 0 else 'rises'} by {abs(drop):.3f}"
            for head, drop in enumerate(row)
        ]
        for layer, row in zip(layers, drops, strict=True)
    ]
    axes = (
        {**token_axis("head", heads), "range": [-0.5, len(heads) - 0.5]},
        {**name_axis(layers), "range": [-0.5, len(layers) - 0.5]},
    )
    crosses = ["✗" if gone else None for gone in removed.ravel()]
    return _map(drops, sentences, axes, marks=crosses, palette=palette)


def redundancy_heatmap(extra: np.ndarray, heads: Sequence[str], *, palette: Palette = LIGHT) -> go.Figure:
    """What removing two heads costs beyond what each costs, float [head, head]; on the diagonal what each costs."""
    sentences = [
        [
            f"head {safe(one)} alone: {extra[i, i]:+.3f} accuracy lost"
            if i == j
            else f"heads {safe(one)} and {safe(other)}: together {extra[i, j]:+.3f} beyond what each costs"
            for j, other in enumerate(heads)
        ]
        for i, one in enumerate(heads)
    ]
    axes = (
        {**token_axis("head", heads, upright=False), "range": [-0.5, len(heads) - 0.5]},
        {**token_axis("head", heads), "range": [len(heads) - 0.5, -0.5]},
    )
    return _map(extra, sentences, axes, palette=palette)


def patching_heatmap(
    recovered: np.ndarray,
    sites: Sequence[str],
    tokens: Sequence[str],
    places: Sequence[str],
    *,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Share of the logit difference that a patch brings back, float [site, column]; the input stands below.

    `tokens` are what is read at a column's place, or a block of it; `places` say where: "9", "9–12".
    """
    limit = max(1.0, float(np.nanmax(np.abs(recovered), initial=0.0)))
    sentences = [
        [f"{safe(site)} at {place}: brings back {share:.3f}" for place, share in zip(places, row, strict=True)]
        for site, row in zip(sites, recovered, strict=True)
    ]
    positions = token_axis("position: the token read there", tokens, upright=False)
    axes = (
        {**positions, "range": [-0.5, recovered.shape[1] - 0.5]},
        {**name_axis(sites), "range": [-0.5, len(sites) - 0.5]},
    )
    note = "<br>measured only: no edit of the list patches single places"
    return _map(recovered, sentences, axes, limit=limit, note=note, palette=palette)


def _map(
    values: np.ndarray,
    sentences: list[list[str]],
    axes: tuple[dict[str, object], dict[str, object]],
    *,
    limit: float = 1.0,
    marks: Sequence[str | None] | None = None,
    note: str = "",
    palette: Palette,
) -> go.Figure:
    """Cells from −limit to limit, a sentence for each, a note below it, and their numbers, or marks, where they fit."""
    cells = {
        "type": "heatmap",
        "z": values.astype(np.float32),
        **scaled(-limit, limit, palette.signed),
        "xgap": 2,
        "ygap": 2,
        "text": sentences,
        "hovertemplate": f"%{{text}}{note}<extra></extra>",
        "name": "values",
    }
    numbers = [_numbers(values, limit, marks, palette)] if values.shape[1] <= MOST_NUMBERED else []
    layout = {
        "template": template(palette),
        "xaxis": axes[0],
        "yaxis": axes[1],
        **bar_layout(-limit, limit, palette),
    }
    return go.Figure([cells, *numbers], layout)


def _numbers(
    values: np.ndarray, limit: float, marks: Sequence[str | None] | None, palette: Palette
) -> dict[str, object]:
    """The numbers in their cells, or the marks in place of some, in ink that can be read there."""
    rows, columns = np.indices(values.shape).reshape(2, -1).tolist()
    numbers = values.astype(np.float64).ravel()
    shares = (np.clip(np.nan_to_num(numbers), -limit, limit) / limit + 1) / 2
    return {
        "type": "scatter",
        "x": columns,
        "y": rows,
        "mode": "text",
        "text": [mark or _number(value) for value, mark in zip(numbers, marks or [None] * numbers.size, strict=True)],
        "textfont": {"size": 14, "color": [ink(float(share), palette.signed, palette) for share in shares]},
        "hoverinfo": "skip",
        "meta": {"least_width": LABEL_ROOM + NUMBER_ROOM * values.shape[1]},
        "name": "numbers",
    }


def _number(value: float) -> str:
    """Two digits without the zero before them; nothing for what rounds to nothing."""
    text = f"{abs(value):.2f}"
    if text in ("0.00", "nan"):
        return ""
    return f"{'−' if value < 0 else ''}{text.removeprefix('0')}"


def cost_heatmap(
    costs: np.ndarray, layers: Sequence[str], removed: np.ndarray, *, palette: Palette = LIGHT
) -> go.Figure:
    """What silencing each head adds to the loss, in nats a token, float [layer, head]; a cross where `removed`.

    The scale is centred on 0 and ends at the greatest cost, named at its ends.
    """
    heads = [str(head) for head in range(costs.shape[1])]
    limit = max(0.01, float(np.abs(costs).max(initial=0.0)))
    sentences = [
        [
            f"{safe(layer)}, head {head}: without it {abs(cost):.3f} nats a token {'more' if cost >= 0 else 'less'}"
            for head, cost in enumerate(row)
        ]
        for layer, row in zip(layers, costs, strict=True)
    ]
    axes = (
        {**token_axis("head", heads), "range": [-0.5, len(heads) - 0.5]},
        {**name_axis(layers), "range": [-0.5, len(layers) - 0.5]},
    )
    crosses = ["✗" if gone else None for gone in removed.ravel()]
    return _map(costs, sentences, axes, limit=limit, marks=crosses, palette=palette)
