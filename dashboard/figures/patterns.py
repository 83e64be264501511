"""Attention matrices: row = query (who looks), column = key (looked at). Forbidden is hatched, never zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.colour_bar import ROOM, name_ends, slim_bar
from dashboard.figures.token_axis import safe, token_axis
from dashboard.theme import LIGHT, Palette, colour_scale, template

MOST_HATCHED = 128
"""Beyond this length a scattered mask would need too many lines; the grey alone stays."""
MOST_SENTENCES = 128 * 128
"""Beyond this many cells a figure carries two numbers a cell in place of a sentence: it would weigh megabytes."""


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
    names, read = _safe(predicts if predicts is not None else queries), _safe(keys)

    def sentence(row: int, column: int) -> str:
        return f"{who} '{names[row]}' at {row + 1} reads '{read[column]}' at {column + 1}: {pattern[row, column]:.2f}"

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
        outline(figure, marks, palette)
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
    finite = np.isfinite(scores)
    seen = finite if mask is None else mask & finite
    limit = float(np.abs(scores[seen]).max(initial=0.0)) or 1.0
    asking, asked = _safe(queries), _safe(keys)

    def sentence(row: int, column: int) -> str:
        return (
            f"score of query '{asking[row]}' at {row + 1} with key '{asked[column]}' at {column + 1}: "
            f"{scores[row, column]:.2f}"
        )

    return _matrix(
        scores,
        seen,
        queries,
        keys,
        sentence,
        scale={"zmin": -limit, "zmax": limit, "colorscale": colour_scale(palette.signed)},
        bar=True,
        link=link,
        palette=palette,
    )


def mask_heatmap(
    mask: np.ndarray, queries: Sequence[str], keys: Sequence[str], *, link: str | None = None, palette: Palette = LIGHT
) -> go.Figure:
    """A mask: bool [query, key], True = may see. Two states, no scale."""
    asking, asked = _safe(queries), _safe(keys)

    def sentence(row: int, column: int) -> str:
        return f"query '{asking[row]}' at {row + 1} may see '{asked[column]}' at {column + 1}"

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
    hover = _hover(seen, sentence, _safe(queries), _safe(keys))
    gap = 1 if max(n_query, n_key) <= 24 else 0
    figure = go.Figure()
    figure.add_heatmap(
        z=np.where(seen, values, np.nan).astype(np.float32),
        hoverongaps=False,
        xgap=gap,
        ygap=gap,
        showscale=bar,
        colorbar=slim_bar() if bar else None,
        name="values",
        **hover(" reads %{customdata[1]}: %{z:.2f}" if bar else " may see %{customdata[1]}"),
        **scale,
    )
    if not seen.all():
        figure.add_heatmap(
            z=np.where(seen, np.nan, 0).astype(np.float32),
            hoverongaps=False,
            colorscale=[[0, palette.forbidden], [1, palette.forbidden]],
            showscale=False,
            name="forbidden",
            meta={"forbidden": True},
            **hover(" may not see %{customdata[1]}"),
        )
        if max(seen.shape) <= MOST_HATCHED:
            hatch(figure, ~seen, palette)
    figure.update_layout(
        template=template(palette),
        xaxis={
            **token_axis("key: looked at", keys, upright=False),
            "range": [-0.5, n_key - 0.5],
            "constrain": "domain",
        },
        yaxis={
            **token_axis("query: who looks", queries),
            "autorange": False,
            "range": [n_query - 0.5, -0.5],
            "scaleanchor": "x",
            "constrain": "domain",
            "constraintoward": "top",
        },
        showlegend=False,
        margin={"l": 4, "r": 4, "t": ROOM, "b": 4},
        meta={"link": link, "tokens": {"x": list(keys), "y": list(queries)}},
    )
    if bar:
        name_ends(figure, float(scale["zmin"]), float(scale["zmax"]), palette)  # type: ignore[arg-type]
    return figure


def _hover(
    seen: np.ndarray, sentence: Callable[[int, int], str], queries: Sequence[str], keys: Sequence[str]
) -> Callable[[str], dict[str, object]]:
    """What a heatmap needs to say a sentence of each cell; in a large one, the words given and two positions."""
    n_query, n_key = seen.shape
    if seen.size > MOST_SENTENCES:
        places = np.moveaxis(np.indices(seen.shape), 0, -1).astype(np.uint16) + np.uint16(1)
        return lambda words: {
            "customdata": places,
            "hovertemplate": f"query at %{{customdata[0]}}{words}<extra></extra>",
        }
    text = [
        [
            sentence(row, column)
            if seen[row, column]
            else f"query '{queries[row]}' at {row + 1} may not see '{keys[column]}' at {column + 1}"
            for column in range(n_key)
        ]
        for row in range(n_query)
    ]
    return lambda words: {"text": text, "hovertemplate": "%{text}<extra></extra>"}


def hatch(figure: go.Figure, forbidden: np.ndarray, palette: Palette) -> None:
    """Lines through the forbidden cells, falling to the right: along the diagonal, across the mirror image.

    Neighbours on a diagonal share one line, and long sequences get every second or third line only: a line a pixel
    would be a grey of another kind.
    """
    rows, columns = np.indices(forbidden.shape)
    drawn = forbidden & ((columns - rows) % -(-max(forbidden.shape) // 24) == 0)
    padded = np.pad(drawn, 1)
    first = np.argwhere(padded & ~np.roll(padded, 1, axis=(0, 1))) - 1
    last = np.argwhere(padded & ~np.roll(padded, -1, axis=(0, 1))) - 1
    # Sorted by diagonal, the starts and the ends of the lines come in the same order.
    first, last = (cells[np.lexsort((cells[:, 0], cells[:, 1] - cells[:, 0]))] for cells in (first, last))
    none = np.full(len(first), np.nan)
    figure.add_scatter(
        x=np.stack([first[:, 1] - 0.5, last[:, 1] + 0.5, none], axis=1).ravel().astype(np.float32),
        y=np.stack([first[:, 0] - 0.5, last[:, 0] + 0.5, none], axis=1).ravel().astype(np.float32),
        mode="lines",
        line={"width": 1.2, "color": palette.hatch},
        hoverinfo="skip",
        name="hatching",
    )


def outline(figure: go.Figure, marks: np.ndarray, palette: Palette) -> None:
    """A thin frame around each marked cell."""
    rows, columns = np.nonzero(marks)
    none = np.full(len(rows), np.nan)
    half = 0.45
    across = [columns - half, columns + half, columns + half, columns - half, columns - half, none]
    down = [rows - half, rows - half, rows + half, rows + half, rows - half, none]
    figure.add_scatter(
        x=np.stack(across, axis=1).ravel().astype(np.float32),
        y=np.stack(down, axis=1).ravel().astype(np.float32),
        mode="lines",
        line={"width": 2, "color": palette.chance},
        hoverinfo="skip",
        name="expected",
    )


def _safe(tokens: Sequence[str]) -> list[str]:
    return [safe(token) for token in tokens]
