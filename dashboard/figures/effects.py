"""What edits do, as maps on the diverging scale: removals, pairs of removals, and patches."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import bar_layout, scaled
from dashboard.figures.kit.labels import LABEL_ROOM, cell_numbers, name_axis
from dashboard.figures.kit.token_axis import safe, token_axis
from dashboard.theme import LIGHT, Palette, template

NUMBER_ROOM = 40
"""Pixels that a cell with a number needs."""
MOST_NUMBERED = 20
"""More columns than this, and numbers in the cells would touch."""


def cost_heatmap(
    costs: np.ndarray,
    layers: Sequence[str],
    removed: np.ndarray,
    words: tuple[str, str],
    *,
    limit: float | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """What each head is worth, float [layer, head]: accuracy lost or nats added without it. The first stands below.

    A cross stands where `removed`, bool, is True. `words` are what the pointer says of a cost and of a gain. The scale
    is centred on 0 and ends at `limit`, or at the greatest cost.
    """
    heads = [str(head) for head in range(costs.shape[1])]
    sentences = [
        [
            f"{safe(layer)}, head {head}: {words[int(cost < 0)].format(f'{abs(cost):.3f}')}"
            for head, cost in enumerate(row)
        ]
        for layer, row in zip(layers, costs, strict=True)
    ]
    axes = (
        {**token_axis("head", heads), "range": [-0.5, len(heads) - 0.5]},
        {**name_axis(layers), "range": [-0.5, len(layers) - 0.5]},
    )
    limit = limit or max(0.01, float(np.abs(costs).max(initial=0.0)))
    return _map(costs, sentences, axes, limit=limit, marks=np.where(removed, "✕", ""), palette=palette)


def redundancy_heatmap(extra: np.ndarray, heads: Sequence[str], *, palette: Palette = LIGHT) -> go.Figure:
    """What removing two heads costs beyond what each costs, float [head, head]; on the diagonal what each costs."""
    sentences = [
        [
            f"removing head {safe(one)} alone: {extra[i, i]:.3f} of the accuracy is lost".replace("-", "−")
            if i == j
            else f"removing heads {safe(one)} and {safe(other)} together: {abs(extra[i, j]):.3f} "
            f"{'less' if extra[i, j] < 0 else 'more'} is lost than the sum of removing each alone"
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
        [
            "" if math.isnan(share) else f"{safe(site)} at {place}: {share:.3f} of the logit difference comes back"
            for place, share in zip(places, row, strict=True)
        ]
        for site, row in zip(sites, recovered, strict=True)
    ]
    positions = token_axis("position: the token read there", tokens, upright=False)
    axes = (
        {**positions, "range": [-0.5, recovered.shape[1] - 0.5]},
        {**name_axis(sites), "range": [-0.5, len(sites) - 0.5]},
    )
    note = "<br>The list of edits can patch a whole head, but not one position alone."
    return _map(recovered, sentences, axes, limit=limit, note=note, palette=palette)


def _map(
    values: np.ndarray,
    sentences: list[list[str]],
    axes: tuple[dict[str, object], dict[str, object]],
    *,
    limit: float = 1.0,
    marks: np.ndarray | None = None,
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
    width = LABEL_ROOM + NUMBER_ROOM * values.shape[1]
    numbers = cell_numbers(values, _number, (-limit, limit), palette.signed, palette, width=width, marks=marks)
    layout = {
        "template": template(palette),
        "xaxis": axes[0],
        "yaxis": axes[1],
        **bar_layout(-limit, limit, palette),
    }
    return go.Figure([cells, *([numbers] if values.shape[1] <= MOST_NUMBERED else [])], layout)


def _number(value: float) -> str:
    """Two digits without the zero before them; nothing for what rounds to nothing."""
    text = f"{abs(value):.2f}"
    if text in ("0.00", "nan"):
        return ""
    return f"{'−' if value < 0 else ''}{text.removeprefix('0')}"
