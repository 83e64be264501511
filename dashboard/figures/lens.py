"""The residual stream on its way: what each stage would say, how one token's probability moves, and who wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.colour_bar import ROOM, name_ends, slim_bar
from dashboard.figures.token_axis import safe, token_axis
from dashboard.theme import LIGHT, Palette, colour_scale, contrast, pattern_colours, template

MOST_LETTERED = 24
"""More positions than this, and letters in the cells would touch."""
LETTER_ROOM = 20
"""Pixels that a lettered cell needs."""
LABEL_ROOM = 150
"""Pixels that the names of the stages take from the width."""
MOST_SENTENCES = 6000
"""More cells than this, and a sentence for each would weigh a megabyte."""
MOST_NAMES = 9
"""More stages than this, and a low figure names only some of them."""
MOST_LEVEL = 10
"""More parts than this, and their names stand on end."""
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
    palette: Palette = LIGHT,
) -> go.Figure:
    """Probabilities, float [stage, position] from 0 to 1: the input at the bottom, the output on top.

    `said` are the likeliest tokens, with a tick where `right`, bool [stage, position]. `known`, bool [position], are
    the positions whose answer can be known: a frame stands around them. `chosen` is a cell, (stage, position).
    """
    n_stages, n = values.shape
    few = n <= MOST_LETTERED
    figure = go.Figure()
    figure.add_heatmap(
        z=values.astype(np.float32),
        zmin=0.0,
        zmax=1.0,
        colorscale=colour_scale(palette.scale),
        colorbar=slim_bar(),
        xgap=2 if few else 0,
        ygap=2,
        name="values",
        **_hover(values, said, stages, targets),
    )
    if few:
        _letter(figure, values, said, right, known, palette)
    elif n <= MOST_MARKED:
        _mark(figure, right & known, palette)
    for known_here, run in groupby(range(n), key=lambda i: bool(known[i])):
        places = list(run)
        if known_here:
            _frame(figure, (places[0] - 0.5, -0.5, places[-1] + 0.5, n_stages - 0.5), palette.chance, 2.5)
    if chosen is not None:
        stage, place = chosen
        for inset, colour in ((0.5, palette.text), (0.45, palette.background)):  # one of them is seen on any ground
            _frame(figure, (place - inset, stage - inset, place + inset, stage + inset), colour, 3)
    axis = token_axis("position: the token read there", read, upright=False)
    _say_targets(figure, targets, known, n_stages, axis, palette)
    figure.update_layout(
        template=template(palette),
        xaxis={**axis, "range": [-0.5, n - 0.5]},
        yaxis={
            **_stage_axis([*stages, "right token"]),
            "tickfont": {"size": 14 if n_stages <= 14 else 11},
            "range": [-0.5, n_stages + 0.4],
        },
        showlegend=False,
        margin={"l": 4, "r": 4, "t": ROOM, "b": 4},
    )
    name_ends(figure, 0.0, 1.0, palette)
    return figure


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
    figure = go.Figure()
    figure.add_bar(
        x=shares.astype(np.float32),
        y=list(range(len(order))),
        orientation="h",
        marker={"color": [palette.right if token == right else palette.before for token in order]},
        text=[f"{share:.2f}{' ✓' if token == right else ''}" for token, share in zip(order, shares, strict=True)],
        textposition="outside",
        textfont={"size": 15, "color": palette.text},
        cliponaxis=False,
        customdata=[safe(names[token]) for token in order],
        hovertemplate="'%{customdata}': %{x:.3f}<extra></extra>",
        name="tokens",
    )
    figure.update_layout(
        template=template(palette),
        xaxis={"title": {"text": "probability"}, "range": [0, 1.12], "tickvals": [0, 0.5, 1]},
        yaxis={
            **_stage_axis([names[token] for token in order]),
            "tickfont": {"size": 16},
            "range": [len(order) - 0.5, -0.5],
        },
        showlegend=False,
        bargap=0.25,
    )
    return figure


def stage_line(
    probabilities: np.ndarray, stages: Sequence[str], chosen: int, chance: float, *, palette: Palette = LIGHT
) -> go.Figure:
    """The right token's probability at each stage, float [stage], the first below; `chosen` is ringed."""
    places = np.arange(len(stages))
    figure = go.Figure()
    figure.add_scatter(
        x=[chance, chance],
        y=[-0.4, len(stages) - 0.6],
        mode="lines",
        line={"color": palette.chance, "width": 2, "dash": "dash"},
        hovertemplate=f"chance {chance:.2f}<extra></extra>",
        name="chance",
    )
    figure.add_scatter(
        x=probabilities.astype(np.float32),
        y=places,
        mode="lines+markers",
        line={"color": palette.measured, "width": 2.5},
        marker={
            "size": [14 if place == chosen else 8 for place in places],
            "line": {"width": [3 if place == chosen else 0 for place in places], "color": palette.text},
        },
        customdata=[safe(stage) for stage in stages],
        hovertemplate="%{customdata}: %{x:.3f}<extra></extra>",
        name="right token",
    )
    step = -(-len(stages) // MOST_NAMES)
    axis = _stage_axis(stages)
    axis["tickvals"], axis["ticktext"] = axis["tickvals"][::step], axis["ticktext"][::step]
    figure.update_layout(
        template=template(palette),
        xaxis={"title": {"text": "probability of the right token"}, "range": [-0.03, 1.05], "tickvals": [0, 0.5, 1]},
        yaxis={**axis, "range": [-0.5, len(stages) - 0.5]},
        showlegend=False,
    )
    return figure


def writes_heatmap(
    writes: np.ndarray, layers: Sequence[str], parts: Sequence[str], *, palette: Palette = LIGHT
) -> go.Figure:
    """What each part adds to a logit, float [layer, part], on the diverging scale; nan where there is no such part.

    The first layer stands below, as the data goes. Letters only where there is room for them.
    """
    limit = float(np.nanmax(np.abs(writes), initial=0.0)) or 1.0
    level = len(parts) <= MOST_LEVEL
    figure = go.Figure()
    figure.add_heatmap(
        z=writes.astype(np.float32),
        zmin=-limit,
        zmax=limit,
        colorscale=colour_scale(palette.signed),
        colorbar=slim_bar(),
        hoverongaps=False,
        xgap=2,
        ygap=2,
        texttemplate="%{z:.1f}" if len(parts) <= 14 else None,
        textfont={"size": 15},
        customdata=[[f"{safe(part)} of layer {safe(layer)}" for part in parts] for layer in layers],
        hovertemplate="%{customdata}: %{z:.2f}<extra></extra>",
        name="writes",
    )
    figure.update_layout(
        template=template(palette),
        xaxis={
            "tickmode": "array",
            "tickvals": list(range(len(parts))),
            "ticktext": [safe(part).replace("-", "-<br>" if level else "-") for part in parts],
            "tickangle": 0 if level else -90,
            "showgrid": False,
            "ticks": "",
            "range": [-0.5, len(parts) - 0.5],
        },
        yaxis={**_stage_axis([f"layer {layer}" for layer in layers]), "range": [-0.5, len(layers) - 0.5]},
        showlegend=False,
        margin={"l": 4, "r": 4, "t": ROOM, "b": 4},
    )
    name_ends(figure, -limit, limit, palette)
    return figure


def _letter(
    figure: go.Figure,
    values: np.ndarray,
    said: Sequence[Sequence[str]],
    right: np.ndarray,
    known: np.ndarray,
    palette: Palette,
) -> None:
    """The likeliest token in its cell, in ink that can be read on the cell's colour."""
    table = pattern_colours(palette.dark)
    cells = list(np.ndindex(*values.shape))
    inks = []
    for cell in cells:
        ground = "#{:02x}{:02x}{:02x}".format(*table[round(255 * float(values[cell]))])
        inks.append(max((palette.text, palette.background), key=lambda ink: contrast(ink, ground)))
    figure.add_scatter(
        x=[column for _, column in cells],
        y=[row for row, _ in cells],
        mode="text",
        text=[f"<b>{safe(said[r][c])}✓</b>" if right[r, c] and known[c] else safe(said[r][c]) for r, c in cells],
        textfont={"size": 15 if values.shape[1] <= 16 else 13, "color": inks},
        hoverinfo="skip",
        meta={"least_width": LABEL_ROOM + LETTER_ROOM * values.shape[1]},
        name="letters",
    )


def _say_targets(
    figure: go.Figure,
    targets: Sequence[str],
    known: np.ndarray,
    row: int,
    axis: dict[str, Any],
    palette: Palette,
) -> None:
    """A row of letters above the stages: the right tokens, those that can be known in bold."""
    places = axis["tickvals"]
    figure.add_scatter(
        x=places,
        y=[row] * len(places),
        mode="text",
        text=[f"<b>{safe(targets[place])}</b>" if known[place] else safe(targets[place]) for place in places],
        textfont={
            "size": max(axis["tickfont"]["size"], 12) + 1,
            "color": [palette.text if known[place] else palette.muted for place in places],
        },
        hoverinfo="skip",
        name="right token",
    )


def _mark(figure: go.Figure, right: np.ndarray, palette: Palette) -> None:
    """A dot in each cell that is right, where there is no room for letters."""
    rows, columns = np.nonzero(right)
    figure.add_scatter(
        x=columns,
        y=rows,
        mode="markers",
        marker={"size": 5, "color": palette.background, "line": {"width": 1, "color": palette.text}},
        hoverinfo="skip",
        name="right",
    )


def _stage_axis(names: Sequence[str]) -> dict[str, Any]:
    """A vertical axis with a name at each place 0, 1, 2 …"""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": [safe(name) for name in names],
        "showgrid": False,
        "ticks": "",
        "ticklabelstandoff": 6,
    }


def _frame(figure: go.Figure, corners: tuple[float, float, float, float], colour: str, width: float) -> None:
    x0, y0, x1, y1 = corners
    figure.add_shape(
        type="rect", x0=x0, y0=y0, x1=x1, y1=y1, line={"color": colour, "width": width}, fillcolor="rgba(0,0,0,0)"
    )


def _hover(
    values: np.ndarray, said: Sequence[Sequence[str]], stages: Sequence[str], targets: Sequence[str]
) -> dict[str, object]:
    """A sentence for each cell; in a large figure its stage, position and number."""
    if values.size > MOST_SENTENCES:
        places = [[str(place + 1) for place in range(values.shape[1])]] * len(values)
        return {"text": places, "hovertemplate": "%{y}, position %{text}: %{z:.2f}<extra></extra>"}
    sentences = [
        [
            f"{safe(stage)}, position {place + 1}: would say '{safe(said[row][place])}'; right is '{safe(target)}'; "
            f"{values[row, place]:.2f}"
            for place, target in enumerate(targets)
        ]
        for row, stage in enumerate(stages)
    ]
    return {"text": sentences, "hovertemplate": "%{text}<extra></extra>"}
