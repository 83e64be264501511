"""Numbers on coloured cells, as HTML: what a heatmap shows, to be read digit by digit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import groupby

import numpy as np

from dashboard.figures.kit.notation import lowered_html
from dashboard.figures.kit.token_axis import elided
from dashboard.theme import LIGHT, Palette, contrast, hex_ramp

MINUS = "−"
AXES = ("query", "key", "d_head", "d_model", "d_features", "coordinate", "head", "d_ff", "d_vocab")
"""Every axis has one colour, everywhere."""
LETTER, THIN, PADDING = 8.5, 6.5, 12
"""Pixels that a bold letter takes beside its row, a letter of its place, and what is left free around them."""
NARROWEST, NUMBERS, NUMBER, WIDEST = 78, 520, 38, 640
"""Pixels of the first column, of all others and of each of them, at least; of a table that a projector shows whole."""
STAYS = ";position:sticky;right:0"
"""Of what stays in sight where the table scrolls."""
FRAME = ("0 -1.5px 0", "0 1.5px 0", "inset 0 1px 0", "inset 0 -1px 0")
"""A row's frame above and below a cell, as shadows."""
CROWD = 16
"""So many columns or more, and the digits are a little smaller, so that they stay apart."""


@dataclass(frozen=True)
class Block:
    """Columns that belong together: their headings, their cells, and how dark each cell is."""

    headings: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    """[row][column]; an empty text is a cell with nothing in it."""
    shades: np.ndarray
    """float [row, column], -1 to 1 on the signed scale, 0 to 1 on the other; nan for the page's own ground."""
    signed: bool = True
    forbidden: np.ndarray | None = None
    """bool [row, column], hatched; None where nothing is."""
    present: bool = False
    """Is this what the step in hand computes?"""
    strong: bool = False
    axis: str | None = None
    """What runs along the columns."""
    width: int | None = None
    """Pixels of each column; None shares what is left."""
    name: str = ""
    """What its numbers are called where they are saved."""
    values: np.ndarray | None = None
    """The numbers that `texts` round, [row, column]; None where there are none."""

    @property
    def stays(self) -> bool:
        """Does it stay in sight where the table scrolls, as on a phone? One column that the step in hand computes."""
        return self.present and len(self.headings) == 1


@dataclass(frozen=True)
class Label:
    """What a row is called: a token and its position, or words."""

    text: str
    place: int | None = None
    """Counted from 1."""
    above: bool = False
    """A line above this row: what follows is not a key."""
    chosen: bool = False
    """Is this the row that matters? It is framed."""


def axis_colour(axis: str, palette: Palette = LIGHT) -> str:
    """The colour of an axis; beside it always stands its name."""
    return palette.categorical[AXES.index(axis)]


def number_table(
    labels: Sequence[Label],
    blocks: Sequence[Block],
    *,
    axis: str | None,
    spoken: str,
    least: int | None = None,
    palette: Palette = LIGHT,
) -> str:
    """A table of coloured numbers. `axis` runs along the rows, `spoken` says in words what is shown.

    It takes `least` pixels from side to side; None is as many as its columns need.
    """
    widths = "".join(
        "<col>" if block.width is None else f'<col style="width:{block.width}px">'
        for block in blocks
        for _ in block.headings
    )
    names = "".join(_axis(axis, f'colspan="{columns}"', palette) for axis, columns in _spans(blocks))
    first = max(NARROWEST, *(round(_width(label)) for label in labels))
    heads = "".join(_heading(block, text, palette) for block in blocks for text in block.headings)
    body = "".join(_row(label, i, blocks, palette) for i, label in enumerate(labels))
    columns = sum(len(block.headings) for block in blocks)
    needed = max(WIDEST, first + max(NUMBERS, NUMBER * columns)) if least is None else least
    size = 14 if columns < CROWD else 13
    return (
        f'<div style="overflow-x:auto"><table aria-label="{escape(spoken, quote=True)}" '
        f'style="min-width:{needed}px;border-collapse:separate;'
        f"border-spacing:1px;table-layout:fixed;width:100%;font-size:{size}px;line-height:21px;color:{palette.text};"
        f'font-variant-numeric:tabular-nums"><colgroup><col style="width:{first}px">{widths}</colgroup>'
        f"<thead><tr><td></td>{names}</tr>"
        f"<tr>{_axis(axis, '', palette)}{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _called(label: Label) -> tuple[str, str]:
    """What a row is called, its middle left out where it is long, and its place."""
    return (label.text, "") if label.place is None else (elided(label.text), f"at {label.place}")


def _width(label: Label) -> float:
    """Pixels that it needs."""
    text, place = _called(label)
    return LETTER * len(text) + THIN * len(place) + (THIN if place else 0) + PADDING


def _spans(blocks: Sequence[Block]) -> list[tuple[str | None, int]]:
    """The axes along the columns, each with how many it spans: blocks side by side along one axis share its name."""
    return [
        (axis, sum(len(block.headings) for block in together))
        for axis, together in groupby(blocks, key=lambda block: block.axis)
    ]


def _axis(axis: str | None, extra: str, palette: Palette) -> str:
    """A heading that names an axis in its colour, or an empty place."""
    if axis is None:
        return f"<td {extra}></td>"
    colour = axis_colour(axis, palette)
    return (
        f'<th scope="col" {extra} style="text-align:left;font-weight:600;padding:0 6px;'
        f'border-bottom:3px solid {colour}">'
        f"{lowered_html(axis)}</th>"
    )


def _heading(block: Block, text: str, palette: Palette) -> str:
    colour, weight = (palette.text, 700) if block.present else (palette.muted, 400)
    line = f";border-bottom:3px solid {palette.accent if block.present else palette.grid}" if not block.axis else ""
    if block.stays:
        line += f"{STAYS};background:{palette.background}"
    return (
        f'<th scope="col" style="padding:0 2px;text-align:center;vertical-align:bottom;font-weight:{weight};'
        f'color:{colour}{line}">{lowered_html(text)}</th>'
    )


def _row(label: Label, row: int, blocks: Sequence[Block], palette: Palette) -> str:
    text, place = _called(label)
    beside = f' <span style="color:{palette.muted}">{place}</span>' if place else ""
    frame = f' style="outline:2.5px solid {palette.accent};outline-offset:-1px"' if label.chosen else ""
    line = f";border-top:2px solid {palette.muted}" if label.above else ""
    # What stays in sight lies above the row's frame, and draws its own part of it.
    around = f";box-shadow:{','.join(f'{side} {palette.accent}' for side in FRAME)}" if label.chosen else ""
    cells = "".join(
        _cell(block, row, column, line + (STAYS + around if block.stays else ""), palette)
        for block in blocks
        for column in range(len(block.headings))
    )
    return (
        f'<tr{frame}><th scope="row" style="text-align:left;padding:0 6px;white-space:nowrap;font-weight:400{line}">'
        f"<b>{escape(text)}</b>{beside}</th>{cells}</tr>"
    )


def _cell(block: Block, row: int, column: int, line: str, palette: Palette) -> str:
    style = f"text-align:center;padding:0 1px;white-space:nowrap{line}"
    shade = float(block.shades[row, column])
    if block.forbidden is not None and block.forbidden[row, column]:
        style += f";color:{palette.text};background:repeating-linear-gradient(135deg,{palette.forbidden} 0 5px,"
        style += f"{palette.hatch} 5px 6px)"
    elif not np.isnan(shade):
        ground, ink = shaded(shade, palette.signed if block.signed else palette.scale, block.signed)
        style += f";background:{ground};color:{ink}"
    elif block.stays:
        style += f";background:{palette.background}"
    if block.strong:
        style += ";font-weight:700"
    return f'<td style="{style}">{escape(block.texts[row][column])}</td>'


def shaded(shade: float, anchors: tuple[str, ...], signed: bool) -> tuple[str, str]:
    """The colour of a value, and the ink that is legible on it."""
    share = (shade + 1) / 2 if signed else shade
    return _pairs(anchors)[round(64 * min(max(share, 0.0), 1.0))]


@cache
def _pairs(anchors: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    inks = ("#000000", "#ffffff")  # one of them has a contrast of 4.5 on any ground
    return tuple((colour, max(inks, key=lambda ink: contrast(ink, colour))) for colour in hex_ramp(anchors))
