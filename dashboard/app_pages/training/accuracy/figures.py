"""Accuracy taken apart, as maps on one scale from 0 to 1: by head, by symbol, by length, and which symbol for which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import ROOM, bar_layout, flat, scaled
from dashboard.figures.kit.labels import cell_numbers, name_axis
from dashboard.figures.kit.lines import frame, upright
from dashboard.figures.kit.numbers import between
from dashboard.figures.kit.token_axis import safe, token_axis
from dashboard.theme import LIGHT, Palette, template

LABEL_ROOM, SYMBOL_ROOM, NUMBER_ROOM = 90, 40, 34
"""Pixels that the names of the rows take from the width, or symbols in their place; and what a number needs."""
STANDOFF = 16
"""Pixels between the names of columns and what they are called together."""
MOST_NUMBERED = 20
"""More columns than this, and numbers in the cells would touch."""
MOST_TARGETS = 20
"""More columns than this, and only some targets are named."""
MOST_ROWS = 36
"""More rows than this, and only some of them are named."""
LEAST = 0.005
"""Rarer confusions get no number: nearly all cells would say so."""
BESIDE = 0.4
"""How far the column of whole answers stands beside those of their tokens, in columns."""


def accuracy_by_head_heatmap(
    accuracy: np.ndarray,
    heads: Sequence[str],
    names: Sequence[str],
    groups: Sequence[str],
    *,
    focus: int | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """What is right without each head, float [1 + head, target], 0 to 1; the first row is that of the whole model.

    Look for the rows that pale: the head in focus is framed.
    """
    whole = accuracy[0]
    said = [
        [f"whole model, {_at(names, i)}: {share:.3f} right" for i, share in enumerate(whole)],
        *(
            [
                f"without head {safe(head)}, {_at(names, i)}: {share:.3f} right, {whole[i]:.3f} with it"
                for i, share in enumerate(row)
            ]
            for head, row in zip(heads, accuracy[1:], strict=True)
        ),
    ]
    rim: dict[str, object] = {"color": palette.chance, "width": 2.5}
    shapes = [frame(-0.5, focus + 0.5, len(names) - 0.5, focus + 1.5, rim)] if focus is not None else []
    layout = {
        "xaxis": _targets(names),
        "yaxis": _rows(["whole model", *heads], "head removed"),
        "shapes": [*_partings(groups, palette), *shapes],
        "meta": {"tokens": {"x": list(names), "y": ["whole model", *heads]}},
    }
    return _figure(_cells(accuracy, said, palette), accuracy, layout, palette)


def accuracy_by_symbol_heatmap(
    correct: np.ndarray,
    seen: np.ndarray,
    interval: tuple[np.ndarray, np.ndarray],
    tokens: Sequence[str],
    names: Sequence[str],
    groups: Sequence[str],
    *,
    palette: Palette = LIGHT,
) -> go.Figure:
    """How often each token is right where it is to be said: int [token, target], and the bounds of 95 % intervals.

    Grey where a token was never to be said.
    """
    shares = np.where(seen > 0, correct / np.maximum(seen, 1), np.nan)
    low, high = interval
    said = [
        [
            f"'{safe(token)}' at {_at(names, i)}: {shares[row, i]:.3f} right, {correct[row, i]:,} of {seen[row, i]:,}"
            f"<br>{between(low[row, i], high[row, i])}"
            if seen[row, i]
            else f"'{safe(token)}' was never the right token at {_at(names, i)}"
            for i in range(len(names))
        ]
        for row, token in enumerate(tokens)
    ]
    layout = {
        "xaxis": _targets(names),
        "yaxis": _rows(tokens, "right symbol"),
        "shapes": _partings(groups, palette),
        "meta": {"tokens": {"x": list(names), "y": list(tokens)}},
    }
    return _figure(_cells(shares, said, palette), shares, layout, palette)


def accuracy_by_length_heatmap(
    accuracy: np.ndarray,
    exact: np.ndarray,
    lengths: Sequence[int],
    trained: Sequence[bool],
    names: Sequence[str],
    groups: Sequence[str],
    *,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Length by target, float [length, target], and how many whole answers are right, float [length].

    The columns are the targets of the longest: nan, and grey, are those that a shorter sequence does not have. The
    last column, apart from them, is the whole answer.
    """
    known = np.isfinite(accuracy)
    said = [
        [
            f"length {n}, {safe(name)}: {share:.3f} right" if there else f"length {n} has no {safe(name)}"
            for name, share, there in zip(names, row, here, strict=True)
        ]
        for n, row, here in zip(lengths, accuracy, known, strict=True)
    ]
    place, last = len(names) + BESIDE, exact[:, None]
    in_words = [[f"length {n}: {share:.3f} of whole answers right"] for n, share in zip(lengths, exact, strict=True)]
    whole = {**_cells(last, in_words, palette)[0], "x": [place], "showscale": False, "name": "whole answers"}
    numbers = (
        [_numbers(last, palette, LABEL_ROOM + NUMBER_ROOM * len(names), place)] if len(names) <= MOST_NUMBERED else []
    )
    layout = {
        "xaxis": _targets(names, whole=place),
        "yaxis": _rows([f"{n}" if old else f"{n}, new" for n, old in zip(lengths, trained, strict=True)], "length"),
        "shapes": _partings(groups, palette),
        "meta": {"tokens": {"x": list(names)}, "places": {"y": list(lengths)}},
    }
    return _figure([*_cells(accuracy, said, palette), whole, *numbers], accuracy, layout, palette)


def confusion_heatmap(
    counts: np.ndarray, true: Sequence[str], said: Sequence[str], *, palette: Palette = LIGHT
) -> go.Figure:
    """What is said for what, int [true, said], each row as shares of its sum; grey where a symbol was never right.

    Look beside the diagonal, which runs where `said` begins as `true` does: there it takes one symbol for another.
    """
    sums = counts.sum(axis=1, keepdims=True)
    shares = np.where(sums > 0, counts / np.maximum(sums, 1), np.nan)
    sentences = [
        [
            f"for '{safe(one)}' it says '{safe(other)}' {counts[i, j]:,} times of {sums[i, 0]:,}: {shares[i, j]:.4f}"
            if sums[i, 0]
            else f"'{safe(one)}' was never the right token"
            for j, other in enumerate(said)
        ]
        for i, one in enumerate(true)
    ]
    layout = {
        "xaxis": {
            **token_axis("what the model says", said, upright=False),
            "title": {"text": "what the model says", "standoff": STANDOFF},
            "range": [-0.5, len(said) - 0.5],
        },
        "yaxis": {**token_axis("right symbol", true), "range": [len(true) - 0.5, -0.5], "ticklabelstandoff": 4},
        "meta": {"tokens": {"x": list(said), "y": list(true)}},
    }
    numbered = np.where(shares < LEAST, np.nan, shares)
    return _figure(_cells(shares, sentences, palette), numbered, layout, palette, beside=SYMBOL_ROOM)


def _figure(
    traces: list[dict[str, object]],
    shares: np.ndarray,
    layout: Mapping[str, object],
    palette: Palette,
    beside: int = LABEL_ROOM,
) -> go.Figure:
    """The cells and their numbers, which stand `beside` so many pixels of names, in one go."""
    columns = shares.shape[1]
    numbers = [_numbers(shares, palette, beside + NUMBER_ROOM * columns)] if columns <= MOST_NUMBERED else []
    around = {"template": template(palette), **bar_layout(0.0, 1.0, palette), "margin": {"t": ROOM, "r": 8, "b": 60}}
    return go.Figure([*traces, *numbers], {**around, **layout})


def _cells(shares: np.ndarray, sentences: list[list[str]], palette: Palette) -> list[dict[str, object]]:
    """A heatmap of shares with a sentence for each cell, and a grey one where there is none (nan)."""
    cells = {"type": "heatmap", "hoverongaps": False, "xgap": 1, "ygap": 1, "text": sentences}
    cells["hovertemplate"] = "%{text}<extra></extra>"
    missing = np.isnan(shares)
    values = {**cells, **scaled(0.0, 1.0, palette.scale), "z": shares.astype(np.float32), "name": "values"}
    grey = {
        **cells,
        **flat(palette.forbidden),
        "z": np.where(missing, 0, np.nan).astype(np.float32),
        "meta": {"numbers": False},
        "name": "missing",
    }
    return [values, grey] if missing.any() else [values]


def _numbers(shares: np.ndarray, palette: Palette, width: int, start: float = 0.0) -> dict[str, object]:
    return cell_numbers(shares, _short, (0.0, 1.0), palette.scale, palette, width=width, start=start)


def _short(share: float) -> str:
    """Two digits without the zero before them; only what is nothing says 0, and only what is all says 1."""
    if share in (0.0, 1.0):
        return f"{share:.0f}"
    if share < LEAST:
        return "<.01"
    if share <= 0.995:
        return f"{share:.2f}".removeprefix("0")
    return f"{share:.3f}".removeprefix("0") if share < 0.9995 else ">.999"


def _at(names: Sequence[str], target: int) -> str:
    return f"position {target + 1} ({safe(names[target])})"


def _targets(names: Sequence[str], whole: float | None = None) -> dict[str, object]:
    """A horizontal axis with a column a target, named while there is room, and one of `whole` answers beside them."""
    shown = list(range(0, len(names), -(-len(names) // MOST_TARGETS)))
    more = [] if whole is None else [whole]
    return {
        "title": {"text": "target", "standoff": STANDOFF},
        "tickmode": "array",
        "tickvals": [*shown, *more],
        "ticktext": [*(safe(names[i]) for i in shown), *("whole" for _ in more)],
        "tickfont": {"size": 14 if len(shown) <= 16 else 12},
        "showgrid": False,
        "ticks": "",
        "range": [-0.5, (len(names) - 1 if whole is None else whole) + 0.5],
    }


def _rows(names: Sequence[str], title: str) -> dict[str, object]:
    """A vertical axis with a row a name, the first on top."""
    return {**name_axis(names, MOST_ROWS), "title": {"text": title}, "range": [len(names) - 0.5, -0.5]}


def _partings(groups: Sequence[str], palette: Palette) -> list[dict[str, object]]:
    """Lines between the parts of the sequence."""
    line: dict[str, object] = {"color": palette.text, "width": 2}
    return [upright(i + 0.5, line) for i, (one, other) in enumerate(pairwise(groups)) if one != other]
