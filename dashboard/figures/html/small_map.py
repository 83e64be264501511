"""A model in small, as a row of boxes for each stack, with the part that a page shows filled: an image for HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from dashboard.theme import LIGHT, Palette

WIDTH, ROW, HIGH = 260, 34, 22
"""Units from side to side, from one stack to the next, and of a box from top to bottom."""
MOST_DOTS = 8
"""More heads than this, and their dots would touch."""


def small_map(
    stacks: Sequence[Sequence[str]], heads: int, shown: str, sentence: str, *, palette: Palette = LIGHT
) -> str:
    """`stacks` name the boxes of each from left to right: "tokens", "positions", "block", "state" or "output".

    `shown` is the kind of box that is filled; "attention" fills the heads of all blocks, "stream" the line between all
    boxes. `sentence` says it to a screen reader.
    """
    marks = []
    for row, boxes in enumerate(stacks):
        middle = ROW * row + ROW / 2
        room = WIDTH / len(boxes)
        ground = palette.accent if shown == "stream" else palette.muted
        marks.append(
            f'<line x1="8" x2="{WIDTH - 8}" y1="{middle}" y2="{middle}" stroke="{ground}" '
            f'stroke-width="{5 if shown == "stream" else 1.5}"/>'
        )
        for at, kind in enumerate(boxes):
            left, wide = room * at + 3, room - 6
            filled = shown == kind
            marks.append(
                f'<rect x="{left:.1f}" y="{middle - HIGH / 2}" width="{wide:.1f}" height="{HIGH}" rx="4" '
                f'fill="{palette.accent if filled else palette.background}" stroke="{palette.muted}"/>'
            )
            if kind == "block":
                marks.append(_dots(left, wide, middle, heads, filled, shown == "attention", palette))
    high = ROW * len(stacks)
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" width="{WIDTH}" height="{high}">'
        f"{''.join(marks)}</svg>"
    )
    return (
        f'<img alt="{escape(sentence, quote=True)}" style="display:block;width:100%;max-width:{WIDTH}px" '
        f'src="data:image/svg+xml,{quote(drawing)}">'
    )


def _dots(left: float, wide: float, middle: float, heads: int, filled: bool, shown: bool, palette: Palette) -> str:
    """A dot a head, and the feed-forward layer as a line under them."""
    count = min(heads, MOST_DOTS)
    radius = min(4.0, wide / (2.6 * count))
    colour = palette.background if filled else palette.accent if shown else palette.muted
    dots = "".join(
        f'<circle cx="{left + wide * (index + 0.5) / count:.1f}" cy="{middle - 3}" r="{radius:.1f}" fill="{colour}"/>'
        for index in range(count)
    )
    line = palette.background if filled else palette.muted
    return (
        f'{dots}<line x1="{left + 4:.1f}" x2="{left + wide - 4:.1f}" y1="{middle + 6}" y2="{middle + 6}" '
        f'stroke="{line}" stroke-width="2"/>'
    )
