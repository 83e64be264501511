"""Positional encodings: the table, single dimensions as waves, how alike positions are, and how that falls off."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import ROOM, bar_ends, scaled
from dashboard.figures.kit.lines import frame, upright
from dashboard.figures.kit.token_axis import lines_of, safe
from dashboard.theme import LIGHT, Palette, rgb, template

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
MOST_MARKERS = 24
"""More positions than this, and markers would hide their line."""
MOST_PARTED = 32
"""More pairs of dimensions than this, and lines between them would hide the cells."""


def encoding_heatmap(
    table: np.ndarray,
    *,
    title_x: str = "dimension",
    columns: Sequence[str] | None = None,
    ticks: Mapping[int, str] | None = None,
    cursor: int | None = None,
    parts: Sequence[str] = (),
    signed: bool = True,
    palette: Palette = LIGHT,
) -> go.Figure:
    """The encoding, float [position, dimension]: a row is what is added to a token there.

    On the diverging scale centred on 0; without `signed`, on the sequential one from 0 to the largest value. `columns`
    are said when one is pointed at, `ticks` stand below some; with them, lines part the pairs of columns. The row of
    the position `cursor`, from 1, is framed. With the names of its `parts`, columns taken in turn, that row stands
    below as a curve for each, and the cursor can be dragged. Look at how fast the columns change from row to row.
    """
    positions, dimensions = table.shape
    across: dict[str, object] = {"title": {"text": safe(title_x)}}
    if ticks:
        names = [lines_of(text) for text in ticks.values()]
        across |= {"tickmode": "array", "tickvals": list(ticks), "ticktext": names, "tickangle": 0}
    if columns is not None:
        across |= {"type": "category"}
    shapes = [] if ticks is None else _parted(dimensions, palette)
    if cursor is not None:
        shapes.append(frame(-0.5, cursor - 0.5, dimensions - 0.5, cursor + 0.5, _cursor_line(palette)))
    return matrix_heatmap(
        table,
        (np.arange(1, positions + 1), np.arange(dimensions)),
        f"position %{{y}}, {safe(re.split('[ ;]', title_x)[0])} %{{x}}: %{{z:.3f}}",
        signed=signed,
        across=across,
        shapes=shapes,
        columns=columns,
        cursor=cursor,
        parts=parts,
        palette=palette,
    )


def similarity_heatmap(similarity: np.ndarray, *, cursor: int | None = None, palette: Palette = LIGHT) -> go.Figure:
    """Inner products of positions, float [position, position]: the narrower the ridge, the easier to tell apart.

    Where all are above 0, the scale begins at the least of them: else it would be one colour. The row of the position
    `cursor`, from 1, is framed, stands below as a curve, and can be dragged.
    """
    places, least = np.arange(1, len(similarity) + 1), float(similarity.min())
    signed = least <= 0 or least == similarity.max()
    shapes = []
    if cursor is not None:
        shapes.append(frame(0.5, cursor - 0.5, len(similarity) + 0.5, cursor + 0.5, _cursor_line(palette)))
    return matrix_heatmap(
        similarity,
        (places, places),
        "position %{y} and position %{x}: %{z:.1f}",
        signed=signed,
        low=None if signed else least,
        across={"title": {"text": "position"}, "constrain": "domain", **few_ticks(len(similarity))},
        down={"scaleanchor": "x", "constrain": "domain", "constraintoward": "top"},
        shapes=shapes,
        cursor=cursor,
        parts=("its product with every position",),
        palette=palette,
    )


CURSORS = "cursor"
"""The group of figures whose cursors move together: a page shows one encoding at a time."""
BELOW, GAP = 0.2, 0.1
"""Shares of a figure's height: of the curves below a matrix, and between the two."""


def _curves(
    row: np.ndarray, names: Sequence[object], parts: Sequence[str], palette: Palette
) -> list[dict[str, object]]:
    """Traces: a row of a matrix, float [column], as a curve for each of the `parts`, columns taken in turn."""
    across = np.arange(len(row))
    return [
        {
            "type": "scatter",
            "x": [names[i] for i in across[first :: len(parts)]],
            "y": row[first :: len(parts)].astype(np.float32),
            "yaxis": "y2",
            "mode": "lines+markers" if len(row) <= 2 * MOST_MARKERS * len(parts) else "lines",
            "line": {"width": 2, "dash": DASHES[first], "color": palette.categorical[first]},
            "marker": {"size": 5},
            "name": safe(part),
            "showlegend": False,
            "hovertemplate": f"{safe(part)}, %{{x}}: %{{y:.3f}}<extra></extra>",
            "meta": {"numbers": False},  # they are the matrix's
        }
        for first, part in enumerate(parts)
    ]


def _said_of(parts: Sequence[str]) -> str:
    """What stands above the curves, with {} in the place of the position."""
    dashes = ("solid", "dashed") if len(parts) > 1 else ("",)
    said = " and ".join(f"{part} ({dash})" if dash else part for part, dash in zip(parts, dashes, strict=True))
    return f"position {{}}: {safe(said)}"


def _cursor(axis: str, cursor: int, most: int, shape: int, **followers: object) -> dict[str, object]:
    """A figure's `meta.cursor`: its shape of this number stands at the position `cursor` of `most` and can be dragged.

    What follows it inside the browser (web/plot/cursor.js): `curves`, whose numbers are those of the matrix' row there,
    `marks`, the sizes of the marks here and elsewhere, and the `words` of an annotation.
    """
    return {"group": CURSORS, "axis": axis, "at": cursor, "most": most, "shape": shape} | followers


def encoding_waves(
    table: np.ndarray,
    dimensions: Sequence[int],
    names: Sequence[str],
    *,
    cursor: int | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Chosen columns of the encoding, float [position, dimension], as lines over the positions.

    An upright line stands at the position `cursor`, from 1, and a large mark where it meets each wave. It can be
    dragged.
    """
    places = np.arange(1, len(table) + 1)
    here, elsewhere = 12.0, 7.0 if len(places) <= MOST_MARKERS else 0.0
    sizes = [here if place == cursor else elsewhere for place in places]
    waves = [
        {
            "type": "scatter",
            "x": places,
            "y": table[:, dimension].astype(np.float32),
            "mode": "lines+markers" if len(places) <= MOST_MARKERS or cursor is not None else "lines",
            "line": {
                "width": 2.5,
                "dash": DASHES[i % len(DASHES)],
                "color": palette.categorical[i % len(palette.categorical)],
            },
            "marker": {"size": sizes, "symbol": i % 8},
            "name": safe(name),
            "hovertemplate": f"{safe(name)} at position %{{x}}: %{{y:.3f}}<extra></extra>",
        }
        for i, (dimension, name) in enumerate(zip(dimensions, names, strict=True))
    ]
    layout = {
        "template": template(palette),
        "showlegend": True,
        "legend": {"entrywidth": 0, "font": {"size": 14}},
        "xaxis": {"title": {"text": "position"}, "range": [0.5, len(table) + 0.5], **_ticks(len(table))},
        "yaxis": {"title": {"text": "value"}, "nticks": 6},
    }
    if cursor is not None:
        marks = {"here": here, "elsewhere": elsewhere}
        layout |= {
            "shapes": [upright(cursor, _cursor_line(palette))],
            "dragmode": False,
            "meta": {"cursor": _cursor("x", cursor, len(table), 0, marks=marks)},
        }
    return go.Figure(waves, layout)


def distance_profile(mean: np.ndarray, low: np.ndarray, high: np.ndarray, *, palette: Palette = LIGHT) -> go.Figure:
    """How alike two positions are at each distance, float [distance] from 0: the mean, and from least to greatest."""
    distance = np.arange(len(mean))
    band = {"type": "scatter", "x": distance, "mode": "lines", "line": {"width": 0}, "showlegend": False}
    red, green, blue = rgb(palette.measured)
    lines = [
        {**band, "y": low.astype(np.float32), "name": "least", "hovertemplate": "least: %{y:.2f}<extra></extra>"},
        {
            **band,
            "y": high.astype(np.float32),
            "name": "greatest",
            "fill": "tonexty",
            "fillcolor": f"rgba({red},{green},{blue},0.25)",
            "hovertemplate": "greatest: %{y:.2f}<extra></extra>",
        },
        {
            "type": "scatter",
            "x": distance,
            "y": mean.astype(np.float32),
            "mode": "lines+markers" if len(distance) <= MOST_MARKERS else "lines",
            "line": {"width": 2.5, "color": palette.measured},
            "marker": {"size": 7},
            "name": "mean",
            "showlegend": False,
            "hovertemplate": "%{x} apart: %{y:.2f} on average<extra></extra>",
        },
    ]
    layout = {
        "template": template(palette),
        "hovermode": "x",
        "xaxis": {
            "title": {"text": "distance between two positions"},
            "range": [-0.5, len(mean) - 0.5],
            **few_ticks(len(mean)),
        },
        "yaxis": {"title": {"text": "inner product"}, "nticks": 6, "zeroline": True, "zerolinecolor": palette.muted},
    }
    return go.Figure(lines, layout)


def matrix_heatmap(
    values: np.ndarray,
    places: tuple[np.ndarray, np.ndarray],
    sentence: str,
    *,
    signed: bool,
    across: Mapping[str, object],
    down: Mapping[str, object] | None = None,
    high: float | None = None,
    low: float | None = None,
    columns: Sequence[str] | None = None,
    shapes: Sequence[Mapping[str, object]] = (),
    cursor: int | None = None,
    parts: Sequence[str] = (),
    palette: Palette = LIGHT,
) -> go.Figure:
    """A matrix of numbers, rows downwards, and a scale from `low`, else 0 or −`high`, to `high`, else the largest.

    `places` are the numbers of rows and columns, `columns` the names of these; `across` and `down` are what else there
    is to say of the two axes. With a `cursor` and `parts` the last of the `shapes` frames a row that can be dragged,
    and its numbers stand below as curves.
    """
    rows, numbers = places
    top = high or float(np.abs(values).max(initial=0.0)) or 1.0
    low = (-top if signed else 0.0) if low is None else low
    named = {"x0": int(numbers[0]), "dx": 1} if columns is None else {"x": [safe(name) for name in columns]}
    cells = {
        "type": "heatmap",
        "z": values.astype(np.float32),
        **named,
        "y0": int(rows[0]),
        "dy": 1,
        **scaled(low, top, palette.signed if signed else palette.scale),
        "hovertemplate": f"{sentence}<extra></extra>",
        "name": "values",
    }
    layout = {
        "template": template(palette),
        "xaxis": {"range": [numbers[0] - 0.5, numbers[-1] + 0.5], "showgrid": False, **_ticks(len(numbers)), **across},
        "yaxis": {
            "title": {"text": "position"},
            "range": [rows[-1] + 0.5, rows[0] - 0.5],
            "showgrid": False,
            **_ticks(len(rows)),
            **(down or {}),
        },
        "margin": {"t": ROOM},
        "annotations": bar_ends(low, top, palette),
        "shapes": list(shapes),
        "meta": None if columns is None else {"places": {"x": [int(number) for number in numbers]}},
    }
    if cursor is None or not parts:
        return go.Figure([cells], layout)
    names = numbers.tolist() if columns is None else [safe(name) for name in columns]
    curves = _curves(values[cursor - 1], names, parts, palette)
    least, most = float(values.min()), float(values.max())
    room = 0.08 * (most - least or 1.0)
    text, ends = _said_of(parts), bar_ends(low, top, palette)
    words = {
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": BELOW,
        "yref": "paper",
        "yanchor": "bottom",
        "text": text.format(cursor),
        "showarrow": False,
        "font": {"size": 14, "color": palette.muted},
    }
    followers = {
        "curves": [{"trace": 1 + i, "first": i, "step": len(parts)} for i in range(len(parts))],
        "words": {"text": text, "annotation": len(ends)},
    }
    layout |= {
        "dragmode": False,
        "annotations": [*ends, words],
        "xaxis": layout["xaxis"] | {"anchor": "y2"},
        "yaxis": layout["yaxis"] | {"domain": [BELOW + GAP, 1]},
        "yaxis2": {
            "domain": [0, BELOW],
            "anchor": "x",
            "range": [least - room, most + room],
            "nticks": 3,
            "zeroline": True,
        },
        "meta": (layout["meta"] or {}) | {"cursor": _cursor("y", cursor, int(rows[-1]), len(shapes) - 1, **followers)},
    }
    return go.Figure([cells, *curves], layout)


def _parted(dimensions: int, palette: Palette) -> list[dict[str, object]]:
    """Shapes: lines between pairs of columns, unless they are too many."""
    if dimensions > 2 * MOST_PARTED:
        return []
    line = {"color": palette.background, "width": 1}
    return [upright(place - 0.5, line) for place in range(2, dimensions, 2)]


def _cursor_line(palette: Palette) -> dict[str, object]:
    return {"color": palette.text, "width": 2.5}


def few_ticks(n: int) -> dict[str, object]:
    """Whole numbers only, and few of them: for the horizontal axis of a narrow figure."""
    return {"dtick": 1} if n <= 8 else {"dtick": None, "nticks": 9}


def _ticks(n: int) -> dict[str, object]:
    """Whole numbers only."""
    return {"dtick": 1} if n <= 16 else {"nticks": 10}
