"""Attention matrices: row = query (who looks), column = key (looked at). Forbidden is hatched, never zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import ROOM, bar_ends, flat, scaled
from dashboard.figures.kit.token_axis import matrix_axes, safe
from dashboard.theme import LIGHT, Palette, template

MOST_HATCHED = 128
"""Beyond this length a scattered mask would need too many lines; the grey alone stays."""
Spans = tuple[np.ndarray, np.ndarray]
"""From which token to which each row and each column goes, counted from 1: int [row, 2] and [column, 2]."""
MOST_SENTENCES = 64 * 64
"""Beyond this many cells a figure carries two numbers a cell in place of a sentence: it would weigh megabytes."""


def pattern_heatmap(
    pattern: np.ndarray,
    mask: np.ndarray | None,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    marks: np.ndarray | None = None,
    predicts: Sequence[str] | None = None,
    spans: Spans | None = None,
    link: str | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """After the softmax: float [query, key] from 0 to 1, one fixed scale. `marks` outlines cells, bool [query, key].

    With `spans` each cell is the greatest of a block.
    """
    who = "output" if predicts is not None else "query"
    names, read = _safe(predicts if predicts is not None else queries), _safe(keys)

    def sentence(row: int, column: int) -> str:
        return f"{who} '{names[row]}' at {row + 1} reads '{read[column]}' at {column + 1}: {pattern[row, column]:.2f}"

    return _matrix(
        pattern,
        mask,
        queries,
        keys,
        sentence,
        scale=scaled(0.0, 1.0, palette.scale),
        ends=(0.0, 1.0),
        frames=[outline(marks, palette.chance, 2, "expected")] if marks is not None and marks.any() else [],
        spans=spans,
        link=link,
        palette=palette,
    )


def scores_heatmap(
    scores: np.ndarray,
    mask: np.ndarray | None,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    spans: Spans | None = None,
    link: str | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Before the softmax: float [query, key], a diverging scale centred on 0 that reaches the largest visible score.

    With `spans` each cell is the greatest of a block.
    """
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
        scale=scaled(-limit, limit, palette.signed),
        ends=(-limit, limit),
        spans=spans,
        link=link,
        palette=palette,
    )


def mask_heatmap(
    mask: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    spans: Spans | None = None,
    link: str | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """A mask: bool [query, key], True = may see. Two states, no scale. With `spans` each cell is any of a block."""
    asking, asked = _safe(queries), _safe(keys)

    def sentence(row: int, column: int) -> str:
        return f"query '{asking[row]}' at {row + 1} may see '{asked[column]}' at {column + 1}"

    return _matrix(
        mask.astype(np.float32),
        mask,
        queries,
        keys,
        sentence,
        scale={"zmin": 0.0, "zmax": 1.0, **flat(palette.scale[1])},
        ends=None,
        spans=spans,
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
    ends: tuple[float, float] | None,
    frames: Sequence[dict[str, object]] = (),
    spans: Spans | None = None,
    link: str | None,
    palette: Palette,
) -> go.Figure:
    n_query, n_key = values.shape
    seen = np.ones((n_query, n_key), dtype=bool) if mask is None else mask
    hover = _hover(seen, sentence, _safe(queries), _safe(keys)) if spans is None else _hover_of_blocks(spans)
    tokens = {"x": list(keys), "y": list(queries)}
    if spans is not None:
        tokens = {side: _ranges(ends, tokens[side]) for side, ends in zip("yx", spans, strict=True)}
    gap = 1 if max(n_query, n_key) <= 24 else 0
    cells = {
        "type": "heatmap",
        "z": np.where(seen, values, np.nan).astype(np.float32),
        **scale,
        "hoverongaps": False,
        "xgap": gap,
        "ygap": gap,
        "name": "values",
        **(
            hover(" reads %{customdata[1]}: %{z:.2f}", "at most %{z:.2f}")
            if ends
            else hover(" may see %{customdata[1]}", "some may be seen")
        ),
    }
    layout = {
        "template": template(palette),
        **matrix_axes(("query: who looks", queries), ("key: looked at", keys)),
        "showlegend": False,
        "margin": {"l": 4, "r": 16, "t": ROOM, "b": 4},
        "meta": {"link": link, "tokens": tokens},
        "annotations": bar_ends(*ends, palette) if ends else [],
    }
    grey = forbidden(seen, hover(" may not see %{customdata[1]}", "none may be seen"), palette)
    return go.Figure([cells, *grey, *frames], layout)


def _hover(
    seen: np.ndarray, sentence: Callable[[int, int], str], queries: Sequence[str], keys: Sequence[str]
) -> Callable[[str, str], dict[str, object]]:
    """What a heatmap needs to say a sentence of each cell; in a large one, the first words given and two positions."""
    n_query, n_key = seen.shape
    if seen.size > MOST_SENTENCES:
        places = np.moveaxis(np.indices(seen.shape), 0, -1).astype(np.uint16) + np.uint16(1)
        return lambda words, _: {
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
    return lambda *_: {"text": text, "hovertemplate": "%{text}<extra></extra>"}


def _hover_of_blocks(spans: Spans) -> Callable[[str, str], dict[str, object]]:
    """The same where a cell is a block: from where to where it goes, and the other words."""
    rows, columns = (ends.astype(np.uint16) for ends in spans)
    places = np.concatenate(
        [
            np.broadcast_to(rows[:, None], (len(rows), len(columns), 2)),
            np.broadcast_to(columns[None, :], (len(rows), len(columns), 2)),
        ],
        axis=-1,
    )
    block = "queries %{customdata[0]}–%{customdata[1]},<br>keys %{customdata[2]}–%{customdata[3]}:<br>"
    return lambda _, words: {"customdata": places, "hovertemplate": f"{block}{words}<extra></extra>"}


def _ranges(ends: np.ndarray, labels: Sequence[str]) -> list[str]:
    """Blocks as they are called where their numbers are saved: from where to where they go, and the word in them."""
    ranges = [f"{first}–{last}" for first, last in ends.tolist()]
    return [f"{span} {label}" if label != span else span for span, label in zip(ranges, labels, strict=True)]


def forbidden(seen: np.ndarray, hover: dict[str, object], palette: Palette) -> list[dict[str, object]]:
    """The cells that may not be seen, grey and hatched; nothing where all may be."""
    if seen.all():
        return []
    grey = {
        "type": "heatmap",
        "z": np.where(seen, np.nan, 0).astype(np.float32),
        "hoverongaps": False,
        **flat(palette.forbidden),
        "name": "forbidden",
        "meta": {"forbidden": True},
        **hover,
    }
    return [grey, _hatching(~seen, palette)] if max(seen.shape) <= MOST_HATCHED else [grey]


def _hatching(cells: np.ndarray, palette: Palette) -> dict[str, object]:
    """Lines through the cells, falling to the right: along the diagonal, across the mirror image.

    Neighbours on a diagonal share one line, and long sequences get every second or third line only: a line a pixel
    would be a grey of another kind.
    """
    rows, columns = np.indices(cells.shape)
    drawn = cells & ((columns - rows) % -(-max(cells.shape) // 24) == 0)
    padded = np.pad(drawn, 1)
    first = np.argwhere(padded & ~np.roll(padded, 1, axis=(0, 1))) - 1
    last = np.argwhere(padded & ~np.roll(padded, -1, axis=(0, 1))) - 1
    # Sorted by diagonal, the starts and the ends of the lines come in the same order.
    first, last = (ends[np.lexsort((ends[:, 0], ends[:, 1] - ends[:, 0]))] for ends in (first, last))
    none = np.full(len(first), np.nan)
    return {
        "type": "scatter",
        "x": np.stack([first[:, 1] - 0.5, last[:, 1] + 0.5, none], axis=1).ravel().astype(np.float32),
        "y": np.stack([first[:, 0] - 0.5, last[:, 0] + 0.5, none], axis=1).ravel().astype(np.float32),
        "mode": "lines",
        "line": {"width": 1.2, "color": palette.hatch},
        "hoverinfo": "skip",
        "name": "hatching",
    }


def outline(marks: np.ndarray, colour: str, width: float, name: str) -> dict[str, object]:
    """A thin frame around each marked cell."""
    rows, columns = np.nonzero(marks)
    none = np.full(len(rows), np.nan)
    half = 0.45
    across = [columns - half, columns + half, columns + half, columns - half, columns - half, none]
    down = [rows - half, rows - half, rows + half, rows + half, rows - half, none]
    return {
        "type": "scatter",
        "x": np.stack(across, axis=1).ravel().astype(np.float32),
        "y": np.stack(down, axis=1).ravel().astype(np.float32),
        "mode": "lines",
        "line": {"width": width, "color": colour},
        "hoverinfo": "skip",
        "name": name,
    }


def _safe(tokens: Sequence[str]) -> list[str]:
    return [safe(token) for token in tokens]
