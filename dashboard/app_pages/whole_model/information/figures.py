"""The effect of each token on each output as a heatmap: row = output, column = replaced token; no path is hatched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit import numbers
from dashboard.figures.kit.colour_bar import bar_layout, scaled
from dashboard.figures.kit.lines import frame
from dashboard.figures.kit.token_axis import matrix_axes, safe
from dashboard.figures.patterns import forbidden, outline
from dashboard.theme import LIGHT, Palette, template

MOST_SENTENCES = 48 * 48
"""Beyond this many cells a figure says two positions and a number in place of a sentence."""
MOST_WIDE = 64
"""Columns that are wide enough for a broad frame."""
MOST_BOXES, NEXT_TO_0 = 32, "≈0"
"""Outputs that have a box each whatever they do; and what stands below one that barely moved."""


@dataclass(frozen=True)
class Axes:
    """What the rows and columns are called."""

    outputs: Sequence[str]
    """What each output says, or a block of them."""
    slots: Sequence[str]
    """The tokens that are read, or blocks of them: the source's first, where there is one."""
    rows: Sequence[str]
    """The outputs and where they stand, in words: "'3' at 2"."""
    columns: Sequence[str]
    """The same of the slots: "'3' at 2 of the source"."""
    n_source: int = 0
    """How many of the slots are the source's."""


@dataclass(frozen=True)
class Words:
    """What a cell says when it is hovered, with {output}, {slot} and {value} in it."""

    cell: str
    forbidden: str


def influence_heatmap(
    values: np.ndarray,
    reach: np.ndarray,
    axes: Axes,
    words: Words,
    *,
    leaking: np.ndarray | None = None,
    most: float | None = None,
    poked: int | None = None,
    link: str | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Float [output, slot], none negative, from 0 to `most` or to the greatest cell; `reach` as bool, alike.

    A cell outside `reach` that is not 0 is a leak: it is drawn, and outlined. Where a cell stands for several,
    `leaking` says in which there is one, bool, alike. `poked` is the slot that is framed.
    """
    n_output, n_slot = values.shape
    leaking = ~reach & (values > 0) if leaking is None else leaking
    shown = reach | leaking
    top = (float(values[shown].max(initial=0.0)) or 1.0) if most is None else most
    gap = 1 if max(values.shape) <= 24 else 0
    hover = _hover(values, shown, axes, words)
    cells = {
        "type": "heatmap",
        "z": np.where(shown, values, np.nan).astype(np.float32),
        **scaled(0.0, top, palette.scale),
        "hoverongaps": False,
        "xgap": gap,
        "ygap": gap,
        "name": "values",
        **hover,
    }
    traces = [cells, *forbidden(shown, hover, palette)]
    if leaking.any():
        traces.append(outline(leaking, palette.wrong, 3 if leaking.sum() <= n_slot else 1, "leaks"))
    frames, bottom = [], n_output - 0.5
    if poked is not None:
        width = 2.5 if n_slot <= MOST_WIDE else 1  # a wider line would cover what it frames
        frames.append(frame(poked - 0.5, -0.5, poked + 0.5, bottom, {"color": palette.text, "width": width}))
    if axes.n_source:
        parting = axes.n_source - 0.5
        frames.append(frame(parting, -0.5, parting, bottom, {"color": palette.muted, "width": 2}))
    slots = "source | what the decoder reads" if axes.n_source else "the token at that position"
    layout = {
        "template": template(palette),
        **matrix_axes(("output: the token it says", axes.outputs), (slots, axes.slots)),
        **bar_layout(0.0, top, palette),
        "meta": {"link": link, "tokens": {"x": list(axes.slots), "y": list(axes.outputs)}},
        "shapes": frames,
    }
    return go.Figure(traces, layout)


def _hover(values: np.ndarray, shown: np.ndarray, axes: Axes, words: Words) -> dict[str, object]:
    """A sentence for each cell; in a large figure two positions and a number."""
    if values.size > MOST_SENTENCES:
        places = np.moveaxis(np.indices(values.shape), 0, -1).astype(np.uint16) + np.uint16(1)
        said = "output at %{customdata[0]}, token at %{customdata[1]}: %{z:.3g}<extra></extra>"
        return {"customdata": places, "hovertemplate": said}
    outputs, slots = ([safe(name) for name in names] for names in (axes.rows, axes.columns))
    text = [
        [
            (words.cell if shown[row, column] else words.forbidden).format(
                output=output, slot=slot, value=f"{values[row, column]:.3g}"
            )
            for column, slot in enumerate(slots)
        ]
        for row, output in enumerate(outputs)
    ]
    return {"text": text, "hovertemplate": "%{text}<extra></extra>"}


# --- the outputs in a row


@dataclass(frozen=True)
class Moved:
    """One output before and after a token was poked."""

    before: str
    after: str
    change: float
    """Of the probability of what was said before."""
    hidden: bool
    """Does no path lead to it?"""
    still: bool
    """Did no logit move at all?"""

    @property
    def flipped(self) -> bool:
        return self.before != self.after

    def spoken(self) -> str:
        if self.still:
            return f"{self.before} did not move" + (", hidden by the mask" if self.hidden else "")
        became = f"{self.before} becomes {self.after}" if self.flipped else f"{self.before} stays"
        return f"{became}, probability {signed(self.change)}" + (", a leak" if self.hidden else "")

    @property
    def lot(self) -> str:
        """What neighbours have in common that need no box each; nothing where this one needs its own."""
        if self.still:
            return "cannot move" if self.hidden else "do not move"
        return "barely move" if not (self.flipped or self.hidden) and signed(self.change) == NEXT_TO_0 else ""


def moved_strip(outputs: Sequence[Moved], palette: Palette = LIGHT) -> str:
    """A box for each output, as one HTML text: what it said, → what it says now, Δ of the probability, its position.

    Of more than MOST_BOXES outputs, neighbours that do not move, or barely, share a box.
    """
    boxes, spoken = [], []
    for lot, group in groupby(enumerate(outputs, 1), lambda placed: placed[1].lot):
        members = list(group)
        if lot and len(outputs) > MOST_BOXES and len(members) > 1:
            (first, example), last = members[0], members[-1][0]
            boxes.append(_shared(f"{first}–{last}", lot, example, palette))
            spoken.append(f"at {first} to {last} {lot}")
        else:
            boxes += [_box(place, output, palette) for place, output in members]
            spoken += [f"at {place} {output.spoken()}" for place, output in members]
    return (
        f'<div role="img" aria-label="outputs: {escape("; ".join(spoken), quote=True)}." '
        f'style="display:flex;flex-wrap:wrap;gap:5px;align-items:flex-start">{"".join(boxes)}</div>'
    )


def _box(place: int, output: Moved, palette: Palette) -> str:
    leak = output.hidden and not output.still
    colour = palette.wrong if output.flipped or leak else palette.muted if output.still else palette.text
    border = f"3px double {palette.wrong}" if output.flipped or leak else f"1.5px solid {palette.grid}"
    letters = f"{output.before}→{output.after}" if output.flipped else output.before
    inside = f"font:600 20px/34px monospace;color:{colour};border:{border};background:{_ground(output, palette)}"
    below = "leak " * leak + ("0" if output.still else signed(output.change))
    return _boxed(str(place), escape(letters), inside, f'<span style="color:{colour}">{below}</span>', palette)


def _shared(places: str, lot: str, example: Moved, palette: Palette) -> str:
    """A box for several outputs that do not move, or barely."""
    inside = (
        f"font-size:15px;line-height:35px;color:{palette.muted};border:1.5px solid {palette.grid};"
        f"background:{_ground(example, palette)}"
    )
    words = f'<span style="background:{palette.surface};padding:1px 5px;border-radius:5px">{lot}</span>'
    return _boxed(places, words, inside, "0" if example.still else NEXT_TO_0, palette)


def _ground(output: Moved, palette: Palette) -> str:
    if not output.hidden:
        return palette.surface
    return f"repeating-linear-gradient(45deg,{palette.forbidden} 0 5px,{palette.surface} 5px 9px)"


def _boxed(above: str, content: str, inside: str, below: str, palette: Palette) -> str:
    return (
        f'<span style="text-align:center;color:{palette.muted};font-size:14px;line-height:18px">{above}'
        '<span style="display:block;box-sizing:border-box;min-width:44px;height:38px;padding:0 5px;white-space:pre;'
        f'border-radius:8px;{inside}">{content}</span>{below}</span>'
    )


def signed(value: float) -> str:
    """Two digits and a sign as long as a plus; a move too small for two digits is not none."""
    return NEXT_TO_0 if abs(value) < 0.005 else numbers.signed(value, plus=True)
