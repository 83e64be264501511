"""The steps of a computation in small, the shapes that meet in one of them, and the line of code that does it: HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from dashboard.figures.html.number_table import axis_colour, shaded
from dashboard.figures.kit.notation import lowered_html
from dashboard.theme import LIGHT, Palette

HIGH = 40
"""Pixels of a thumbnail from top to bottom."""
CELL = 3
"""Pixels of a cell in it from side to side."""


@dataclass(frozen=True)
class Thumb:
    """A step in small: float [row, column], -1 to 1 if signed, else 0 to 1; nan where nothing may be seen."""

    symbol: str
    values: np.ndarray
    signed: bool = True


@dataclass(frozen=True)
class Shape:
    """A tensor's name, and its axes with their sizes, in order; a single number has none."""

    name: str
    axes: tuple[tuple[str, int], ...] = ()


def step_strip(thumbs: Sequence[Thumb], present: int, *, palette: Palette = LIGHT) -> str:
    """The whole way from left to right; the step in hand is framed, those to come are faint."""
    parts = []
    for i, thumb in enumerate(thumbs):
        here, to_come = i == present, i > present
        parts.append(
            f'<div style="flex:none;display:flex;flex-direction:column;align-items:center;gap:2px;padding:4px 5px 2px;'
            f"border:2.5px solid {palette.accent if here else 'transparent'};border-radius:8px;"
            f'background:{palette.surface if here else "transparent"}">'
            f'<div style="height:{HIGH}px;display:flex;flex-direction:column;justify-content:center;'
            f'opacity:{0.4 if to_come else 1}">{_picture(thumb, palette)}</div>'
            f'<span style="font-size:15px;line-height:20px;white-space:nowrap;'
            f'color:{palette.muted if to_come else palette.text};font-weight:{700 if here else 400}">'
            f"{lowered_html(thumb.symbol)}</span></div>"
        )
    arrow = f'<span style="flex:0 1 auto;min-width:0;overflow:hidden;font-size:16px;color:{palette.muted}">→</span>'
    return (
        f'<div role="img" aria-label="Step {present + 1} of {len(thumbs)}: '
        f'{escape(thumbs[present].symbol, quote=True)}" '
        f'style="display:flex;align-items:center;justify-content:space-between;overflow-x:auto">{arrow.join(parts)}</div>'
    )


def _picture(thumb: Thumb, palette: Palette) -> str:
    rows, columns = thumb.values.shape
    height = max(1, min(12, HIGH // rows))
    wide = (12 if columns == 1 else CELL) * columns
    anchors = palette.signed if thumb.signed else palette.scale
    lines = []
    for row in thumb.values:
        colours = [palette.forbidden if np.isnan(v) else shaded(float(v), anchors, thumb.signed)[0] for v in row]
        stops = ",".join(f"{colour} 0 {100 * (i + 1) / columns:.4g}%" for i, colour in enumerate(colours))
        lines.append(f'<div style="width:{wide}px;height:{height}px;background:linear-gradient(90deg,{stops})"></div>')
    return "".join(lines)


def shape_line(shapes: Sequence[Shape], *, palette: Palette = LIGHT) -> str:
    """Names and shapes, each axis underlined in its colour; the last is what comes out."""

    def axis(name: str, size: int) -> str:
        colour = axis_colour(name, palette)
        line = f"border-bottom:3px solid {colour};white-space:nowrap"
        return f'<span style="{line}">{lowered_html(name)} <b>{size}</b></span>'

    def shape(each: Shape) -> str:
        axes = ", ".join(axis(name, size) for name, size in each.axes) or "one number"
        return f'<span style="white-space:nowrap">{lowered_html(each.name)} [{axes}]</span>'

    *read, result = (shape(each) for each in shapes)
    joined = f'<span style="color:{palette.muted}">, </span>'.join(read)
    arrow = f' <span style="color:{palette.muted}">→</span> ' if read else ""
    return f'<div style="font-size:16px;line-height:28px;color:{palette.text}">{joined}{arrow}{result}</div>'


def code_excerpt(name: str, lines: Sequence[str], first: int, marked: int, *, palette: Palette = LIGHT) -> str:
    """Lines of code, `first` the number of the first; the one with the index `marked` does the step in hand."""
    shown = "".join(
        '<div style="padding:0 8px 0 28px;text-indent:-20px;white-space:pre-wrap;overflow-wrap:anywhere;'
        + (
            f"border-left:4px solid {palette.accent};font-weight:700;color:{palette.text}"
            if i == marked
            else f"border-left:4px solid transparent;color:{palette.muted}"
        )
        + f'">{_breakable(line) or " "}</div>'
        for i, line in enumerate(lines)
    )
    return (
        f'<div style="font-size:14px;line-height:20px;color:{palette.muted}">{escape(name)}, '
        f"line {first + marked}</div>"
        f'<div style="font:14px/20px monospace;background:{palette.surface};border-radius:8px;padding:6px 0;'
        f'overflow-x:auto">{shown}</div>'
    )


def _breakable(line: str) -> str:
    """A line of code that may break after a bracket or before a full stop, and not within a name."""
    return escape(line).replace("(", "(<wbr>").replace(".", "<wbr>.")
