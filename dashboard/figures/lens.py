"""The residual stream on its way: what each stage would say, and how one token's probability moves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import bar_layout, scaled
from dashboard.figures.kit.labels import LABEL_ROOM, ink, name_axis
from dashboard.figures.kit.lines import frame
from dashboard.figures.kit.token_axis import elided, labelled, safe, token_axis
from dashboard.theme import LIGHT, Palette, template

MOST_LETTERED = 24
"""More positions or stages than this, and letters in the cells would touch."""
LETTER_ROOM = 20
"""Pixels that a lettered cell needs."""
ROW, SHORTEST, MOST_TARGETS = 70, 3, 10
"""Letters for which a row of cells has room, those that a cell gets in any case (SEP), and right words in a row."""
EDGE = 0.04
"""So near an end of the row, as a share of it, a word would reach beyond it, and leans inwards."""
MOST_SENTENCES = 6000
"""More cells than this, and a sentence for each would weigh a megabyte."""
MOST_NAMES = 9
"""More stages than this, and a low figure names only some of them."""
MOST_MARKED = 128
"""More positions than this, and the dots would touch as well."""


def lens_heatmap(
    values: np.ndarray,
    said: Sequence[Sequence[str]],
    right: np.ndarray,
    stages: Sequence[str],
    read: Sequence[str],
    targets: Sequence[str],
    *,
    known: np.ndarray,
    chosen: tuple[int, int] | None = None,
    top: tuple[str, str] = ("right token", "right is"),
    palette: Palette = LIGHT,
) -> go.Figure:
    """Probabilities, float [stage, position] from 0 to 1: the input at the bottom, the output on top.

    `said` are the likeliest tokens, with a tick where `right`, bool [stage, position]. `known`, bool [position], are
    the positions whose answer can be known: a frame stands around them. `chosen` is a cell, (stage, position). Above
    the stages stand the `targets`; `top` is what that row is called, and what comes before a target in a sentence.
    """
    n_stages, n = values.shape
    few = max(n, n_stages) <= MOST_LETTERED
    cells = {
        "type": "heatmap",
        "z": values.astype(np.float32),
        **scaled(0.0, 1.0, palette.scale),
        "xgap": 2 if few else 0,
        "ygap": 2 if few else 0,
        "name": "values",
        **_hover(values, said, stages, targets, top[1]),
    }
    if few:
        over = [_letters(values, said, right, known, palette)]
    else:
        over = [_dots(right & known, palette)] if n <= MOST_MARKED else []
    axis = token_axis("position: the token read there", read, upright=False)
    layout = {
        "template": template(palette),
        "xaxis": {**axis, "range": [-0.5, n - 0.5]},
        "yaxis": {
            **name_axis([*stages, top[0]]),
            "range": [-0.5, n_stages + max(0.4, n_stages / 30)],
        },
        # Where there is room for two frames around the chosen cell, one of them is seen on any ground.
        "shapes": [*_known_frames(known, n_stages, palette), *_cell_frames(chosen, palette)[: 2 if few else 1]],
        **bar_layout(0.0, 1.0, palette),
    }
    return go.Figure([cells, *over, _target_letters(targets, known, n_stages, axis, palette)], layout)


def tokens_bars(
    probabilities: np.ndarray, names: Sequence[str], right: int, *, most: int = 6, palette: Palette = LIGHT
) -> go.Figure:
    """The likeliest tokens of one cell, float [d_vocab], the likeliest on top; the right one carries a tick.

    The right one is always among them, last if it is not likely.
    """
    order = np.argsort(-probabilities, kind="stable")[:most]
    if right not in order:
        order[-1] = right
    shares = probabilities[order]
    bars = {
        "type": "bar",
        "x": shares.astype(np.float32),
        "y": list(range(len(order))),
        "orientation": "h",
        "marker": {"color": [palette.right if token == right else palette.before for token in order]},
        "text": [f"{share:.2f}{' ✓' if token == right else ''}" for token, share in zip(order, shares, strict=True)],
        "textposition": "outside",
        "textfont": {"size": 15, "color": palette.text},
        "cliponaxis": False,
        "customdata": [safe(names[token]) for token in order],
        "hovertemplate": "'%{customdata}': %{x:.3f}<extra></extra>",
        "name": "tokens",
    }
    layout = {
        "template": template(palette),
        "xaxis": {"title": {"text": "probability"}, "range": [0, 1.12], "tickvals": [0, 0.5, 1]},
        "yaxis": {
            **name_axis([names[token] for token in order]),
            "tickfont": {"size": 16},
            "range": [len(order) - 0.5, -0.5],
        },
        "showlegend": False,
        "bargap": 0.25,
    }
    return go.Figure([bars], layout)


def stage_line(
    probabilities: np.ndarray, stages: Sequence[str], chosen: int, chance: float, *, palette: Palette = LIGHT
) -> go.Figure:
    """The right token's probability at each stage, float [stage], the first below; `chosen` is ringed."""
    places = np.arange(len(stages))
    guessing = {
        "type": "scatter",
        "x": [chance, chance],
        "y": [-0.4, len(stages) - 0.6],
        "mode": "lines",
        "line": {"color": palette.chance, "width": 2, "dash": "dash"},
        "hovertemplate": f"chance {chance:.2f}<extra></extra>",
        "name": "chance",
    }
    stairs = {
        "type": "scatter",
        "x": probabilities.astype(np.float32),
        "y": places,
        "mode": "lines+markers",
        "line": {"color": palette.measured, "width": 2.5},
        "marker": {
            "size": [14 if place == chosen else 8 if len(stages) <= MOST_LETTERED else 4 for place in places],
            "line": {"width": [3 if place == chosen else 0 for place in places], "color": palette.text},
        },
        "customdata": [safe(stage) for stage in stages],
        "hovertemplate": "%{customdata}: %{x:.3f}<extra></extra>",
        "name": "right token",
    }
    layout = {
        "template": template(palette),
        "xaxis": {"title": {"text": "probability of the right token"}, "range": [-0.03, 1.05], "tickvals": [0, 0.5, 1]},
        "yaxis": {**name_axis(stages, MOST_NAMES), "range": [-0.5, len(stages) - 0.5]},
        "showlegend": False,
    }
    return go.Figure([guessing, stairs], layout)


def _letters(
    values: np.ndarray, said: Sequence[Sequence[str]], right: np.ndarray, known: np.ndarray, palette: Palette
) -> dict[str, object]:
    """The likeliest token in its cell, in ink that can be read on the cell's colour."""
    cells = list(np.ndindex(*values.shape))
    single, longer = (15, 13) if values.shape[1] <= 16 else (13, 10)
    room = max(SHORTEST, ROW // values.shape[1])
    words = [elided(said[r][c], room) for r, c in cells]
    return {
        "type": "scatter",
        "x": [column for _, column in cells],
        "y": [row for row, _ in cells],
        "mode": "text",
        "text": [
            f"<b>{safe(word)}✓</b>" if right[cell] and known[cell[1]] else safe(word)
            for word, cell in zip(words, cells, strict=True)
        ],
        "textfont": {
            "size": [single if len(said[r][c]) == 1 else longer for r, c in cells],
            "color": [ink(float(values[cell]), palette.scale, palette) for cell in cells],
        },
        "hoverinfo": "skip",
        "meta": {"least_width": LABEL_ROOM + LETTER_ROOM * values.shape[1]},
        "name": "letters",
    }


def _target_letters(
    targets: Sequence[str], known: np.ndarray, row: int, axis: dict[str, Any], palette: Palette
) -> dict[str, object]:
    """A row of letters above the stages: the right tokens, those that can be known in bold."""
    places = labelled(targets, MOST_TARGETS)
    room = max(SHORTEST, ROW // max(1, len(places)))
    letters = [elided(target, room) for target in targets]
    n = len(targets)
    sides = ["right" if place < EDGE * n else "left" if place >= (1 - EDGE) * n else "center" for place in places]
    return {
        "type": "scatter",
        "x": places,
        "y": [row] * len(places),
        "mode": "text",
        "text": [f"<b>{safe(letters[place])}</b>" if known[place] else safe(letters[place]) for place in places],
        "textposition": [f"middle {side if n > MOST_TARGETS else 'center'}" for side in sides],
        "textfont": {
            "size": max(axis["tickfont"]["size"], 12) + 1,
            "color": [palette.text if known[place] else palette.muted for place in places],
        },
        "hoverinfo": "skip",
        "name": "right token",
    }


def _dots(right: np.ndarray, palette: Palette) -> dict[str, object]:
    """A dot in each cell that is right, where there is no room for letters."""
    rows, columns = np.nonzero(right)
    return {
        "type": "scatter",
        "x": columns,
        "y": rows,
        "mode": "markers",
        "marker": {"size": 5, "color": palette.background, "line": {"width": 1, "color": palette.text}},
        "hoverinfo": "skip",
        "name": "right",
    }


def _known_frames(known: np.ndarray, n_stages: int, palette: Palette) -> list[dict[str, object]]:
    """A frame around each run of positions whose answer can be known."""
    runs = [list(run) for here, run in groupby(range(len(known)), key=lambda place: bool(known[place])) if here]
    line: dict[str, object] = {"color": palette.chance, "width": 2.5}
    return [frame(run[0] - 0.5, -0.5, run[-1] + 0.5, n_stages - 0.5, line) for run in runs]


def _cell_frames(cell: tuple[int, int] | None, palette: Palette) -> list[dict[str, object]]:
    """Two frames around a cell, (stage, position), one in the other."""
    if cell is None:
        return []
    stage, place = cell
    return [
        frame(place - inset, stage - inset, place + inset, stage + inset, {"color": colour, "width": 3})
        for inset, colour in ((0.5, palette.text), (0.45, palette.background))
    ]


def _hover(
    values: np.ndarray, said: Sequence[Sequence[str]], stages: Sequence[str], targets: Sequence[str], before: str
) -> dict[str, object]:
    """A sentence for each cell; in a large figure its stage, position and number."""
    if values.size > MOST_SENTENCES:
        places = [[str(place + 1) for place in range(values.shape[1])]] * len(values)
        return {"text": places, "hovertemplate": "%{y}, position %{text}: %{z:.2f}<extra></extra>"}
    sentences = [
        [
            f"{safe(stage)}, position {place + 1}: would say '{safe(said[row][place])}'; {before} '{safe(target)}'; "
            f"{values[row, place]:.2f}"
            for place, target in enumerate(targets)
        ]
        for row, stage in enumerate(stages)
    ]
    return {"text": sentences, "hovertemplate": "%{text}<extra></extra>"}
