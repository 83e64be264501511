"""What edits do, as maps on the diverging scale: removals, pairs of removals, and patches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.colour_bar import ROOM, name_ends, slim_bar
from dashboard.figures.letters import LABEL_ROOM, ink, name_axis
from dashboard.figures.token_axis import safe, token_axis
from dashboard.theme import LIGHT, Palette, colour_scale, template

NUMBER_ROOM = 40
"""Pixels that a cell with a number needs."""
MOST_NUMBERED = 16
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
    figure = _map(drops, sentences, 1.0, ["✗" if gone else None for gone in removed.ravel()], palette)
    figure.update_layout(
        xaxis={**token_axis("head", heads), "range": [-0.5, len(heads) - 0.5]},
        yaxis={**name_axis(layers), "range": [-0.5, len(layers) - 0.5]},
    )
    return figure


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
    figure = _map(extra, sentences, 1.0, None, palette)
    axis = {"range": [-0.5, len(heads) - 0.5]}
    figure.update_layout(
        xaxis={**token_axis("head", heads, upright=False), **axis},
        yaxis={**token_axis("head", heads), "range": [len(heads) - 0.5, -0.5]},
    )
    return figure


def patching_heatmap(
    recovered: np.ndarray, sites: Sequence[str], tokens: Sequence[str], *, palette: Palette = LIGHT
) -> go.Figure:
    """Share of the logit difference that a patch brings back, float [site, position]; the input stands below."""
    limit = max(1.0, float(np.nanmax(np.abs(recovered), initial=0.0)))
    sentences = [
        [f"{safe(site)} at {place + 1}: brings back {share:.3f}" for place, share in enumerate(row)]
        for site, row in zip(sites, recovered, strict=True)
    ]
    figure = _map(recovered, sentences, limit, None, palette)
    axis = token_axis("position: the token read there", tokens, upright=False)
    figure.update_layout(
        xaxis={**axis, "range": [-0.5, recovered.shape[1] - 0.5]},
        yaxis={**name_axis(sites), "range": [-0.5, len(sites) - 0.5]},
    )
    return figure


def _map(
    values: np.ndarray,
    sentences: list[list[str]],
    limit: float,
    marks: Sequence[str | None] | None,
    palette: Palette,
) -> go.Figure:
    """Cells from −limit to limit, a sentence for each, and their numbers (or marks) where there is room."""
    figure = go.Figure()
    figure.add_heatmap(
        z=values.astype(np.float32),
        zmin=-limit,
        zmax=limit,
        colorscale=colour_scale(palette.signed),
        colorbar=slim_bar(),
        xgap=2,
        ygap=2,
        text=sentences,
        hovertemplate="%{text}<extra></extra>",
        name="values",
    )
    if values.shape[1] <= MOST_NUMBERED:
        cells = list(np.ndindex(*values.shape))
        written = marks or [None] * len(cells)
        figure.add_scatter(
            x=[column for _, column in cells],
            y=[row for row, _ in cells],
            mode="text",
            text=[mark or _number(float(values[cell])) for cell, mark in zip(cells, written, strict=True)],
            textfont={
                "size": 14,
                "color": [
                    ink(
                        (float(np.clip(np.nan_to_num(values[c]), -limit, limit)) / limit + 1) / 2,
                        palette.signed,
                        palette,
                    )
                    for c in cells
                ],
            },
            hoverinfo="skip",
            meta={"least_width": LABEL_ROOM + NUMBER_ROOM * values.shape[1]},
            name="numbers",
        )
    figure.update_layout(template=template(palette), showlegend=False, margin={"l": 4, "r": 4, "t": ROOM, "b": 4})
    name_ends(figure, -limit, limit, palette)
    return figure


def _number(value: float) -> str:
    """Two digits without the zero before them; nothing for what rounds to nothing."""
    text = f"{abs(value):.2f}"
    if text in ("0.00", "nan"):
        return ""
    return f"{'−' if value < 0 else ''}{text.removeprefix('0')}"
