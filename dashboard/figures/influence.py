"""What moves what: row = output, column = the token that is poked. What no path leads to is hatched, never zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.colour_bar import bar_layout, scaled
from dashboard.figures.lines import frame
from dashboard.figures.patterns import forbidden, outline
from dashboard.figures.token_axis import matrix_axes, safe
from dashboard.theme import LIGHT, Palette, template

MOST_SENTENCES = 48 * 48
"""Beyond this many cells a figure says two positions and a number in place of a sentence."""


@dataclass(frozen=True)
class Axes:
    """What the rows and columns are called."""

    outputs: Sequence[str]
    """What each output says."""
    slots: Sequence[str]
    """The tokens that are read: the source's first, where there is one."""
    places: Sequence[str]
    """Where these stand, in words: "'3' at 2 of the source"."""
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
    most: float | None = None,
    poked: int | None = None,
    link: str | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Float [output, slot], none negative, from 0 to `most` or to the greatest cell; `reach` as bool, alike.

    A cell outside `reach` that is not 0 is a leak: it is drawn, and outlined. `poked` is the slot that is framed.
    """
    n_output, n_slot = values.shape
    leaking = ~reach & (values > 0)
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
        frames.append(frame(poked - 0.5, -0.5, poked + 0.5, bottom, {"color": palette.text, "width": 2.5}))
    if axes.n_source:
        parting = axes.n_source - 0.5
        frames.append(frame(parting, -0.5, parting, bottom, {"color": palette.muted, "width": 2}))
    slots = "source | what the decoder reads" if axes.n_source else "the token read there"
    layout = {
        "template": template(palette),
        **matrix_axes(("output: what it says", axes.outputs), (slots, axes.slots)),
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
    outputs = [f"'{safe(said)}' at {row + 1}" for row, said in enumerate(axes.outputs)]
    text = [
        [
            (words.cell if shown[row, column] else words.forbidden).format(
                output=output, slot=safe(slot), value=f"{values[row, column]:.3g}"
            )
            for column, slot in enumerate(axes.places)
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


def moved_strip(outputs: Sequence[Moved], palette: Palette = LIGHT) -> str:
    """A box for each output, as one HTML text: what it said, → what it says now, Δ of the probability, its position."""
    spoken = escape("; ".join(f"at {i + 1} {output.spoken()}" for i, output in enumerate(outputs)), quote=True)
    boxes = "".join(_box(i + 1, output, palette) for i, output in enumerate(outputs))
    return (
        f'<div role="img" aria-label="outputs: {spoken}." '
        f'style="display:flex;flex-wrap:wrap;gap:5px;align-items:flex-start">{boxes}</div>'
    )


def _box(place: int, output: Moved, palette: Palette) -> str:
    leak = output.hidden and not output.still
    colour = palette.wrong if output.flipped or leak else palette.muted if output.still else palette.text
    border = f"3px double {palette.wrong}" if output.flipped or leak else f"1.5px solid {palette.grid}"
    ground = (
        f"repeating-linear-gradient(45deg,{palette.forbidden} 0 5px,{palette.surface} 5px 9px)"
        if output.hidden
        else palette.surface
    )
    letters = f"{output.before}→{output.after}" if output.flipped else output.before
    below = "leak " * leak + ("0" if output.still else signed(output.change))
    return (
        f'<span style="text-align:center;color:{palette.muted};font-size:14px;line-height:18px">{place}'
        f'<span style="display:block;box-sizing:border-box;min-width:44px;height:38px;padding:0 5px;'
        f"font:600 20px/34px monospace;white-space:pre;color:{colour};border:{border};border-radius:8px;"
        f'background:{ground}">{escape(letters)}</span>'
        f'<span style="color:{colour}">{below}</span></span>'
    )


def signed(value: float) -> str:
    """Two digits and a sign as long as a plus; a move too small for two digits is "≈0": it is not none."""
    return "≈0" if abs(value) < 0.005 else f"{value:+.2f}".replace("-", "−")
