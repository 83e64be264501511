"""What a score is made of: four terms as maps, two patterns beside each other, shares as bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import ROOM, bar_ends, scaled
from dashboard.figures.kit.lines import frame
from dashboard.figures.kit.token_axis import matrix_axes, safe
from dashboard.figures.patterns import forbidden
from dashboard.theme import LIGHT, Palette, template

TITLE = 24
"""Pixels for the name above a panel."""
GAP = 0.06
"""Between two panels, as a share of the figure."""
LEAST_NUMBER = 0.08
"""A smaller share has no room for its number."""
PATTERNS = ("/", ".", "x", "")


def term_heatmaps(
    terms: np.ndarray,
    names: Sequence[str],
    mask: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Four maps, float [4, query, key], two by two on one diverging scale centred on 0. Look for the strongest."""
    limit = float(np.abs(terms[:, mask]).max(initial=0.0)) or 1.0
    return _panels(
        terms,
        names,
        mask,
        (queries, keys),
        "%+.2f",
        scale=(-limit, limit, palette.signed),
        columns=2,
        palette=palette,
    )


def pattern_pair(
    patterns: np.ndarray,
    names: Sequence[str],
    mask: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Two patterns, float [2, query, key], side by side from 0 to 1. Look for where they differ."""
    return _panels(
        patterns,
        names,
        mask,
        (queries, keys),
        "%.2f",
        scale=(0.0, 1.0, palette.scale),
        columns=2,
        palette=palette,
    )


def _panels(
    maps: np.ndarray,
    names: Sequence[str],
    mask: np.ndarray,
    labels: tuple[Sequence[str], Sequence[str]],
    digits: str,
    *,
    scale: tuple[float, float, tuple[str, ...]],
    columns: int,
    palette: Palette,
) -> go.Figure:
    """Maps of the same cells in a grid: one scale, one bar; tokens along the left and the lower edge only."""
    queries, keys = labels
    rows = -(-len(maps) // columns)
    drawn: list[dict[str, object]] = []
    layout: dict[str, object] = {}
    annotations = []
    grey = forbidden(mask, _hover(_not_seen(mask, queries, keys)), palette)
    colours = scaled(*scale)
    bar = {**colours["colorbar"], "y": 1.0, "yref": "container", "yanchor": "top", "ypad": 7}  # type: ignore[dict-item]
    for i, (name, values) in enumerate(zip(names, maps, strict=True)):
        row, column, n = i // columns, i % columns, "" if i == 0 else str(i + 1)
        here = {"xaxis": f"x{n}", "yaxis": f"y{n}"}
        cells = {
            "type": "heatmap",
            "z": np.where(mask, values, np.nan).astype(np.float32),
            **colours,
            "colorbar": bar,
            "showscale": i == 0,
            "hoverongaps": False,
            "xgap": 1 if max(mask.shape) <= 24 else 0,
            "ygap": 1 if max(mask.shape) <= 24 else 0,
            "name": name,
            **_hover(_seen(f"{safe(name).replace('%', '%%')}: {digits}", values, mask, labels)),
        }
        drawn += [{**trace, **here} for trace in (cells, *grey)]
        axes = matrix_axes(("query: who looks", queries), ("key: looked at", keys))
        across, down = axes["xaxis"], axes["yaxis"]
        across |= {"domain": _span(column, columns), "anchor": f"y{n}"}
        down |= {"domain": _span(rows - 1 - row, rows), "anchor": f"x{n}", "scaleanchor": f"x{n}"}
        if row < rows - 1:
            across |= {"showticklabels": False, "title": {"text": ""}}
        if column:
            down |= {"showticklabels": False, "title": {"text": ""}}
        layout |= {f"xaxis{n}": across, f"yaxis{n}": down}
        annotations.append(_panel_name(name, n, palette))
    layout |= {
        "template": template(palette),
        "showlegend": False,
        "margin": {"l": 4, "r": 4, "t": ROOM + TITLE, "b": 4},
        "annotations": [
            *annotations,
            *({**end, "yshift": 11 + TITLE} for end in bar_ends(scale[0], scale[1], palette)),
        ],
        "meta": {"tokens": {"x": list(keys), "y": list(queries)}},
    }
    return go.Figure(drawn, layout)


def _span(place: int, of: int) -> list[float]:
    """Where the panel at a place stands among its neighbours, as shares of the figure."""
    size = (1 - GAP * (of - 1)) / of
    return [place * (size + GAP), min(1.0, place * (size + GAP) + size)]


def _panel_name(name: str, n: str, palette: Palette) -> dict[str, object]:
    return {
        "text": safe(name),
        "x": 0.5,
        "xref": f"x{n} domain",
        "xanchor": "center",
        "y": 1.0,
        "yref": f"y{n} domain",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 15, "color": palette.text},
    }


def _hover(sentences: list[list[str]]) -> dict[str, object]:
    """A sentence for each cell."""
    return {"text": sentences, "hovertemplate": "%{text}<extra></extra>"}


def _seen(
    words: str, values: np.ndarray, mask: np.ndarray, labels: tuple[Sequence[str], Sequence[str]]
) -> list[list[str]]:
    """What is said of the cells that may be seen; `words` has a place for the value."""
    asking, asked = _places("query", labels[0]), _places("key", labels[1])
    return [
        [
            f"{asking[q]}, {asked[k]}<br>{words % value}".replace(": -", ": −") if mask[q, k] else ""
            for k, value in enumerate(row)
        ]
        for q, row in enumerate(values.tolist())
    ]


def _not_seen(mask: np.ndarray, queries: Sequence[str], keys: Sequence[str]) -> list[list[str]]:
    """What is said of the others."""
    asking, asked = _places("query", queries), _places("key", keys)
    return [
        ["" if mask[q, k] else f"{asking[q]} may not see {asked[k]}" for k in range(len(keys))]
        for q in range(len(queries))
    ]


def _places(who: str, tokens: Sequence[str]) -> list[str]:
    return [f"{who} '{safe(token)}' at {place}" for place, token in enumerate(tokens, 1)]


def share_bars(
    share: np.ndarray,
    names: Sequence[str],
    heads: Sequence[str],
    *,
    focus: int | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """What tells keys apart, float [head, 4], the shares of each head on top of each other; below 0 what works against.

    A bar's customdata is the head's place; `focus` is framed. The last of `names` is the one to look for.
    """
    colours = (*(palette.categorical[i] for i in (1, 3, 2)), palette.measured)
    places = np.arange(len(heads))
    bars = [
        {
            "type": "bar",
            "x": places,
            "y": share[:, i].astype(np.float32),
            "width": 0.66,
            "marker": {
                "color": colours[i],
                "line": {"color": palette.background, "width": 1.5},
                "pattern": {
                    "shape": PATTERNS[i],
                    "fillmode": "overlay",
                    "size": 6,
                    "fgcolor": palette.background,
                    "solidity": 0.2,
                },
            },
            "text": [f"{value:.2f}" if i == len(names) - 1 and value >= LEAST_NUMBER else "" for value in share[:, i]],
            "textposition": "inside",
            "insidetextanchor": "middle",
            "textangle": 0,
            "textfont": {"size": 14, "color": palette.background},
            "customdata": places.tolist(),
            "hovertext": [
                f"head {safe(head)}: every key that it may see has the same score"
                if np.isnan(share[h, i])
                else f"head {safe(head)}, {safe(names[i])}: {share[h, i]:.3f}"
                for h, head in enumerate(heads)
            ],
            "hovertemplate": "%{hovertext}<extra></extra>",
            "name": names[i],
        }
        for i in reversed(range(len(names)))
    ]
    low = float(np.minimum(np.nan_to_num(share), 0).sum(axis=1).min(initial=0.0))
    high = float(np.maximum(np.nan_to_num(share), 0).sum(axis=1).max(initial=1.0))
    ring = []
    if focus is not None:
        ring = [frame(focus - 0.42, low, focus + 0.42, high, {"color": palette.accent, "width": 2})]
    layout = {
        "template": template(palette),
        "barmode": "relative",
        "xaxis": {
            "tickmode": "array",
            "tickvals": places.tolist(),
            "ticktext": [safe(head) for head in heads],
            "showgrid": False,
            "range": [-0.6, len(heads) - 0.4],
            "title": {"text": "head"},
        },
        "yaxis": {"range": [min(low * 1.1, -0.01), high * 1.03], "nticks": 6, "title": {"text": "share"}},
        "shapes": ring,
        "showlegend": True,
        "legend": {"traceorder": "reversed", "entrywidth": 0, "font": {"size": 14}, "x": 0},
        "margin": {"t": 4},
        "meta": {"tokens": {"x": list(heads)}},
    }
    return go.Figure(bars, layout)
