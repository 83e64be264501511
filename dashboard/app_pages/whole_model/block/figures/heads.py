"""A vector split into heads and joined again, where each head looks, and what each writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import ROOM, bar_ends, flat, scaled
from dashboard.figures.kit.labels import name_axis
from dashboard.figures.kit.lines import frame
from dashboard.figures.kit.token_axis import safe, token_axis
from dashboard.theme import LIGHT, Palette, template

GAP = 0.3
"""Between two heads that stand apart, in widths of a head."""
MOST_NAMED = 16
"""More heads than this, and only their numbers stand above them."""
STRIPE = 0.015
"""Of the colour beside a head's rows of W_O, as a share of its width."""
MOVE = 700
"""Milliseconds in which columns move from one step to the next."""


def head_colour(head: int, palette: Palette) -> str:
    """Each head has one colour; beyond ten they come again, and the head's number stands beside it."""
    return palette.categorical[head % len(palette.categorical)]


def head_name(head: int, text: str, palette: Palette) -> str:
    """A head's name behind a square in its colour: letters in some of the colours would be hard to read."""
    return f'<span style="color:{head_colour(head, palette)}">■</span> {text}'


def head_axis(names: Sequence[str], n_heads: int, palette: Palette) -> dict[str, object]:
    """The vertical axis of a map with a row a head, and other rows after them."""
    axis = name_axis(names)
    axis["ticktext"] = [
        head_name(place, text, palette) if place < n_heads else text
        for place, text in zip(axis["tickvals"], axis["ticktext"], strict=True)
    ]
    return {**axis, "range": [len(names) - 0.5, -0.5]}


def split_bars(values: np.ndarray, limit: float, *, apart: bool, of_heads: bool, palette: Palette = LIGHT) -> go.Figure:
    """A vector's numbers as columns, float [head, d_head]: a colour a head, or one for all that are nobody's yet.

    `apart` puts the heads side by side with room between them. The scale goes from -`limit` to `limit` in every step,
    and the columns move from step to step.
    """
    n_heads, width = values.shape
    gap = GAP * width if n_heads > 1 else 0.0
    spread = gap * (n_heads - 1)
    traces = []
    for head, numbers in enumerate(values):
        start = head * (width + gap) if apart else head * width + spread / 2
        first = head * width
        whose = f"head {head}, " if of_heads else ""
        traces.append(
            {
                "type": "bar",
                "x": (start + np.arange(width)).astype(np.float32),
                "y": numbers.astype(np.float32),
                "width": 0.85,
                "marker": {"color": head_colour(head, palette) if of_heads else palette.measured, "line": {"width": 0}},
                "customdata": [f"{whose}number {first + i}" for i in range(width)],
                "hovertemplate": "%{customdata}: %{y:.3f}<extra></extra>",
                "name": f"head {head}" if of_heads else f"numbers {first} to {first + width - 1}",
            }
        )
    named = [
        {
            "x": head * (width + gap) + (width - 1) / 2 if apart else head * width + spread / 2 + (width - 1) / 2,
            "y": 1,
            "yref": "y domain",
            "yanchor": "bottom",
            "text": head_name(head, str(head) if n_heads > MOST_NAMED else f"head {head}", palette),
            "showarrow": False,
            "font": {"size": 15},
        }
        for head in range(n_heads)
        if of_heads
    ]
    layout = {
        "template": template(palette),
        "showlegend": False,
        "bargap": 0,
        "barmode": "overlay",
        "xaxis": {"range": [-1, n_heads * width + spread], "showticklabels": False, "showgrid": False},
        "yaxis": {
            "range": [-1.05 * limit, 1.05 * limit],
            "nticks": 5,
            "zeroline": True,
            "zerolinecolor": palette.muted,
        },
        "annotations": named,
        "margin": {"t": 28, "r": 8, "l": 8, "b": 8},
        "transition": {"duration": MOVE, "easing": "cubic-in-out"},
    }
    return go.Figure(traces, layout)


def output_weights(
    z: np.ndarray, weight: np.ndarray, out: np.ndarray, column: int, *, palette: Palette = LIGHT
) -> go.Figure:
    """z W_O as it is calculated: float [head, d_head], [head, d_head, d_model] and, with the bias added, [d_model].

    Number i of z stands beside row i of W_O, which it is multiplied by; each column of W_O stands above the output that
    it adds up to. Heads have their colours. The `column` is framed.
    """
    n_heads, width, wide = weight.shape
    limit = float(np.abs(weight).max(initial=0.0)) or 1.0
    places = [np.arange(head * width, (head + 1) * width) for head in range(n_heads)]
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "x": numbers.astype(np.float32),
            "y": rows,
            "marker": {"color": head_colour(head, palette), "line": {"width": 0}},
            "hovertemplate": f"head {head}, number %{{y}} of z: %{{x:.3f}}<extra></extra>",
            "name": f"z of head {head}",
        }
        for head, (numbers, rows) in enumerate(zip(z, places, strict=True))
    ]
    maps = [
        {
            "type": "heatmap",
            "z": rows.astype(np.float32),
            "y0": head * width,
            "dy": 1,
            "xaxis": "x2",
            **scaled(-limit, limit, palette.signed),
            "showscale": head == 0,
            "hovertemplate": f"head {head}, row %{{y}}, column %{{x}}: %{{z:.3f}}<extra></extra>",
            "name": f"W_O of head {head}",
        }
        for head, rows in enumerate(weight)
    ]
    sums = {
        "type": "bar",
        "x": list(range(wide)),
        "y": out.astype(np.float32),
        "xaxis": "x2",
        "yaxis": "y2",
        "marker": {"color": palette.measured, "line": {"width": 0}},
        "hovertemplate": "dimension %{x} of the output: %{y:.3f}<extra></extra>",
        "name": "out",
    }
    stripes = [
        {
            "type": "rect",
            "xref": "x2 domain",
            "x0": -STRIPE,
            "x1": 0,
            "yref": "y",
            "y0": head * width - 0.5,
            "y1": (head + 1) * width - 0.5,
            "fillcolor": head_colour(head, palette),
            "line": {"width": 0},
        }
        for head in range(n_heads)
    ]
    cuts = [
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "yref": "y",
            "y0": head * width - 0.5,
            "y1": head * width - 0.5,
            "line": {"color": palette.text, "width": 1.5},
        }
        for head in range(1, n_heads)
    ]
    around = {"color": palette.accent, "width": 2.5}
    framed = [
        {**frame(column - 0.5, n_heads * width - 0.5, column + 0.5, -0.5, around), "xref": "x2", "yref": "y"},
        {**frame(column - 0.5, 0, column + 0.5, 1, around), "xref": "x2", "yref": "y2 domain"},
    ]
    title = {"yref": "y domain", "y": 1, "yanchor": "bottom", "xanchor": "left", "x": 0, "showarrow": False}
    names = [
        {**title, "xref": "x domain", "text": "<b>z</b>"},
        {**title, "xref": "x2 domain", "text": "<b>W<sub>O</sub></b>"},
        {**title, "xref": "x domain", "yref": "y2 domain", "text": "<b>out</b>", "x": 1, "xanchor": "right", "y": 0.5}
        | {"yanchor": "middle"},
    ]
    rows_axis = {
        "tickmode": "array",
        "tickvals": [float(rows.mean()) for rows in places],
        "ticktext": [head_name(head, f"head {head}", palette) for head in range(n_heads)],
    }
    layout = {
        "template": template(palette),
        "showlegend": False,
        "bargap": 0.1,
        "barmode": "overlay",
        "margin": {"l": 4, "r": 12, "t": ROOM, "b": 4},
        "shapes": [*stripes, *cuts, *framed],
        "annotations": [*names, *bar_ends(-limit, limit, palette)],
        "xaxis": {"domain": [0, 0.17], "anchor": "y", "nticks": 3, "showgrid": False, "zeroline": True},
        "xaxis2": {
            "domain": [0.2, 1],
            "anchor": "y2",
            "title": {"text": "dimension of the output"},
            "showgrid": False,
            "nticks": 9,
            "range": [-0.5, wide - 0.5],
        },
        "yaxis": {
            **rows_axis,
            "domain": [0.3, 1],
            "range": [n_heads * width - 0.5, -0.5],
            "showgrid": False,
            "ticks": "",
            "tickfont": {"size": 14},
        },
        "yaxis2": {"domain": [0, 0.24], "anchor": "x2", "nticks": 3, "zeroline": True, "zerolinecolor": palette.muted},
    }
    return go.Figure([*bars, *maps, sums], layout)


def attention_rows(
    pattern: np.ndarray, visible: np.ndarray, keys: Sequence[str], *, palette: Palette = LIGHT
) -> go.Figure:
    """Where one token looks in each head: float [head, key] from 0 to 1, grey where bool [head, key] is False.

    Look whether two rows are alike.
    """
    n_heads, n_keys = pattern.shape
    names = [f"head {head}" for head in range(n_heads)]
    cells = {
        "type": "heatmap",
        "z": np.where(visible, pattern, np.nan).astype(np.float32),
        **scaled(0, 1, palette.scale),
        "xgap": 1 if n_keys <= 64 else 0,
        "ygap": 2,
        "text": [
            [f"head {head} looks at '{safe(key)}' at {place}: {share:.3f}" for place, (key, share) in columns]
            for head, columns in enumerate([list(enumerate(zip(keys, row, strict=True), 1)) for row in pattern])
        ],
        "hovertemplate": "%{text}<extra></extra>",
        "hoverongaps": False,
        "name": "pattern",
    }
    hidden = {
        "type": "heatmap",
        "z": np.where(visible, np.nan, 0).astype(np.float32),
        **flat(palette.forbidden),
        "xgap": cells["xgap"],
        "ygap": 2,
        "hoverongaps": False,
        "hovertemplate": "may not be seen<extra></extra>",
        "name": "forbidden",
        "meta": {"forbidden": True},
    }
    layout = {
        "template": template(palette),
        "showlegend": False,
        "margin": {"l": 4, "r": 16, "t": ROOM, "b": 4},
        "annotations": bar_ends(0, 1, palette),
        "xaxis": {**token_axis("key: looked at", keys, upright=False, length=440), "range": [-0.5, n_keys - 0.5]},
        "yaxis": head_axis(names, n_heads, palette),
    }
    return go.Figure([cells] if visible.all() else [cells, hidden], layout)


def written_rows(
    written: np.ndarray, bias: np.ndarray, out: np.ndarray, shares: np.ndarray, *, palette: Palette = LIGHT
) -> go.Figure:
    """What each head writes, float [head, d_model], the bias, and their sum, all [d_model], on one diverging scale.

    Beside the rows of the heads stands each one's share of their summed lengths, float [head].
    """
    rows = np.vstack([written, bias[None], out[None]])
    n_heads, names = len(written), [*(f"head {head}" for head in range(len(written))), "bias", "sum"]
    limit = float(np.abs(rows).max(initial=0.0)) or 1.0
    cells = {
        "type": "heatmap",
        "z": rows.astype(np.float32),
        **scaled(-limit, limit, palette.signed),
        "ygap": 2,
        "text": [[name] * rows.shape[1] for name in names],
        "hovertemplate": "%{text}, dimension %{x}: %{z:.3f}<extra></extra>",
        "name": "written",
    }
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": shares.astype(np.float32),
        "y": list(range(n_heads)),
        "xaxis": "x2",
        "marker": {"color": [head_colour(head, palette) for head in range(n_heads)], "line": {"width": 0}},
        "text": [f"{share:.2f}" for share in shares],
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"size": 14},
        "hovertemplate": "head %{y}: %{x:.3f} of the summed lengths<extra></extra>",
        "name": "share",
    }
    layout = {
        "template": template(palette),
        "showlegend": False,
        "margin": {"l": 4, "r": 36, "t": ROOM, "b": 4},
        "annotations": bar_ends(-limit, limit, palette),
        "xaxis": {"title": {"text": "dimension"}, "domain": [0, 0.78], "showgrid": False, "nticks": 8},
        "xaxis2": {
            "title": {"text": "share of lengths"},
            "domain": [0.81, 1],
            "anchor": "y",
            "range": [0, max(0.5, 1.1 * float(shares.max()))],
            "nticks": 3,
        },
        "yaxis": head_axis(names, n_heads, palette),
    }
    return go.Figure([cells, bars], layout)
