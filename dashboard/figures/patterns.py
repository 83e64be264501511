"""Attention matrices: row = query (who looks), column = key (looked at). Forbidden is hatched, never zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.theme import LIGHT, Palette, colour_scale, template

MOST_LABELS = 40
"""More tokens than this, and only some of them get a label."""
MOST_HATCHED = 128
"""Beyond this length hatching lines would be thinner than a pixel; the grey alone stays."""


def pattern_heatmap(
    pattern: np.ndarray,
    mask: np.ndarray | None,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    marks: np.ndarray | None = None,
    predicts: Sequence[str] | None = None,
    link: str | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """After the softmax: float [query, key] from 0 to 1, one fixed scale. `marks` outlines cells, bool [query, key]."""
    who = "output" if predicts is not None else "query"
    names = list(predicts if predicts is not None else queries)

    def sentence(row: int, column: int) -> str:
        return f"{who} '{names[row]}' at {row + 1} reads '{keys[column]}' at {column + 1}: {pattern[row, column]:.2f}"

    figure = _matrix(
        pattern,
        mask,
        queries,
        keys,
        sentence,
        scale={"zmin": 0.0, "zmax": 1.0, "colorscale": colour_scale(palette.scale)},
        bar=True,
        link=link,
        palette=palette,
    )
    if marks is not None and marks.any():
        _outline(figure, marks, palette)
    return figure


def scores_heatmap(
    scores: np.ndarray,
    mask: np.ndarray | None,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    link: str | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Before the softmax: float [query, key], a diverging scale centred on 0 that reaches the largest visible score."""
    visible = scores[np.isfinite(scores) & (np.ones_like(scores, bool) if mask is None else mask)]
    limit = float(np.abs(visible).max()) if visible.size else 1.0

    def sentence(row: int, column: int) -> str:
        return (
            f"score of query '{queries[row]}' at {row + 1} with key '{keys[column]}' at {column + 1}: "
            f"{scores[row, column]:.2f}"
        )

    return _matrix(
        scores,
        mask,
        queries,
        keys,
        sentence,
        scale={"zmin": -(limit or 1.0), "zmax": limit or 1.0, "colorscale": colour_scale(palette.signed)},
        bar=True,
        link=link,
        palette=palette,
    )


def mask_heatmap(
    mask: np.ndarray, queries: Sequence[str], keys: Sequence[str], *, link: str | None = None, palette: Palette = LIGHT
) -> go.Figure:
    """A mask: bool [query, key], True = may see. Two states, no scale."""

    def sentence(row: int, column: int) -> str:
        return f"query '{queries[row]}' at {row + 1} may see '{keys[column]}' at {column + 1}"

    colour = palette.scale[1]
    return _matrix(
        mask.astype(np.float32),
        mask,
        queries,
        keys,
        sentence,
        scale={"zmin": 0.0, "zmax": 1.0, "colorscale": [[0, colour], [1, colour]]},
        bar=False,
        link=link,
        palette=palette,
    )


def _matrix(
    values: np.ndarray,
    mask: np.ndarray | None,
    queries: Sequence[str],
    keys: Sequence[str],
    sentence: Callable[[int, int], str],
    *,
    scale: dict[str, object],
    bar: bool,
    link: str | None,
    palette: Palette,
) -> go.Figure:
    n_query, n_key = values.shape
    seen = np.ones((n_query, n_key), dtype=bool) if mask is None else mask
    hover = [
        [
            sentence(row, column)
            if seen[row, column]
            else f"query '{queries[row]}' at {row + 1} may not see '{keys[column]}' at {column + 1}"
            for column in range(n_key)
        ]
        for row in range(n_query)
    ]
    figure = go.Figure()
    gap = 1 if max(n_query, n_key) <= MOST_LABELS else 0
    figure.add_heatmap(
        z=np.where(seen, values, np.nan).astype(np.float32),
        text=hover,
        hovertemplate="%{text}<extra></extra>",
        hoverongaps=False,
        xgap=gap,
        ygap=gap,
        showscale=bar,
        colorbar={
            "thickness": 10,
            "outlinewidth": 0,
            "tickfont": {"size": 13},
            "nticks": 5,
            "len": 1.0,
            "xpad": 4,
        },
        name="values",
        **scale,
    )
    if not seen.all():
        _forbid(figure, seen, hover, gap, palette)
    figure.update_layout(
        template=template(palette),
        xaxis={**_axis("key: looked at", keys), "constrain": "domain", "side": "bottom"},
        yaxis={
            **_axis("query: who looks", queries),
            "autorange": False,
            "range": [n_query - 0.5, -0.5],
            "scaleanchor": "x",
            "constrain": "domain",
        },
        showlegend=False,
        meta={"link": link} if link else None,
    )
    figure.update_xaxes(range=[-0.5, n_key - 0.5])
    return figure


def _forbid(figure: go.Figure, seen: np.ndarray, hover: list[list[str]], gap: int, palette: Palette) -> None:
    """Grey cells with a hatch over them."""
    figure.add_heatmap(
        z=np.where(seen, np.nan, 0).astype(np.float32),
        text=hover,
        hovertemplate="%{text}<extra></extra>",
        hoverongaps=False,
        colorscale=[[0, palette.forbidden], [1, palette.forbidden]],
        showscale=False,
        xgap=gap,
        ygap=gap,
        name="forbidden",
    )
    if max(seen.shape) > MOST_HATCHED:
        return
    rows, columns = np.nonzero(~seen)
    none = np.full(len(rows), np.nan)
    figure.add_scatter(
        x=np.stack([columns - 0.4, columns + 0.4, none], axis=1).ravel().astype(np.float32),
        y=np.stack([rows + 0.4, rows - 0.4, none], axis=1).ravel().astype(np.float32),
        mode="lines",
        line={"width": 1, "color": palette.hatch},
        hoverinfo="skip",
        name="hatching",
    )


def _outline(figure: go.Figure, marks: np.ndarray, palette: Palette) -> None:
    """A thin frame around each marked cell."""
    rows, columns = np.nonzero(marks)
    none = np.full(len(rows), np.nan)
    half = 0.46
    across = [columns - half, columns + half, columns + half, columns - half, columns - half, none]
    down = [rows - half, rows - half, rows + half, rows + half, rows - half, none]
    figure.add_scatter(
        x=np.stack(across, axis=1).ravel().astype(np.float32),
        y=np.stack(down, axis=1).ravel().astype(np.float32),
        mode="lines",
        line={"width": 1.5, "color": palette.chance},
        hoverinfo="skip",
        name="expected",
    )


def _axis(title: str, labels: Sequence[str]) -> dict[str, object]:
    """One tick a token, at its place: equal tokens stay apart."""
    step = -(-len(labels) // MOST_LABELS)
    places = list(range(0, len(labels), step))
    size = 14 if len(labels) <= 20 else 11
    return {
        "title": {"text": title},
        "tickmode": "array",
        "tickvals": places,
        "ticktext": [_escape(labels[i]) for i in places],
        "tickfont": {"size": size},
        "tickangle": 0,
        "showgrid": False,
        "ticks": "",
    }


def _escape(text: str) -> str:
    """Plotly reads tags in tick labels; a token is not one."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
