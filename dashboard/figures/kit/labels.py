"""Labels beside points and letters in cells, placed so that none covers another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dashboard.figures.kit.token_axis import safe
from dashboard.theme import Palette, colour_scale, contrast

SIDES = {
    "top right": (20, 14),
    "top left": (-20, 14),
    "bottom right": (20, -14),
    "bottom left": (-20, -14),
    "middle right": (24, 0),
    "middle left": (-24, 0),
    "top center": (0, 17),
    "bottom center": (0, -17),
}
"""Where a label may stand, and about how many pixels its middle is then from its point."""
LETTER, LINE = 8, 16
"""Pixels of a label's letter and line; a point takes a line's square."""
PLOT = (340, 260)
"""About how many pixels the axes span on a small screen: labels that keep apart there do so on a larger one."""


@dataclass(frozen=True)
class Box:
    """A rectangle on the plot: its middle and its size, in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def inside(self) -> bool:
        """Does it stand on the plot as a whole?"""
        across, up = (size / 2 for size in (self.width, self.height))
        return across <= self.x <= PLOT[0] - across and up <= self.y <= PLOT[1] - up

    def covers(self, other: Box) -> bool:
        """Have the two a point in common?"""
        return (
            abs(self.x - other.x) < (self.width + other.width) / 2
            and abs(self.y - other.y) < (self.height + other.height) / 2
        )


def label_sides(across: np.ndarray, up: np.ndarray, labels: Sequence[str], *, first: int | None = None) -> list[str]:
    """Plotly's `textposition` for each label of a point at float [point], from 0 to 1 on either axis.

    "" where there is no room, and for an empty label; its point is still kept clear if it stands on the plot. The
    label `first` chooses first, and is shown whatever it covers.
    """
    points = {
        i: Box(float(x) * PLOT[0], float(y) * PLOT[1], LINE, LINE)
        for i, (x, y) in enumerate(zip(across, up, strict=True))
        if np.isfinite(x) and np.isfinite(y)
    }
    taken: list[Box] = []
    sides = [""] * len(labels)
    for i in sorted(points, key=lambda i: (i != first, i)):
        if not labels[i]:
            continue
        others = [box for j, box in points.items() if j != i] + taken
        places = {side: _label_box(points[i], side, labels[i]) for side in SIDES}
        inside = [side for side, box in places.items() if box.inside]
        free = [side for side in inside if not any(map(places[side].covers, others))]
        sides[i] = next(iter(free or (inside if i == first else [])), "")
        if sides[i]:
            taken.append(places[sides[i]])
    return sides


def _label_box(point: Box, side: str, label: str) -> Box:
    """The room that a label takes on a side of its point."""
    right, up = SIDES[side]
    width = LETTER * len(label)
    beyond = (right > 0) - (right < 0)  # long labels reach further out
    return Box(point.x + right + beyond * (width / 2 - 1.5 * LETTER), point.y + up, width, LINE)


# --- letters in the cells of a heatmap and beside its rows

LABEL_ROOM = 150
"""Pixels that the names of the rows take from the width."""
MOST_NAMES = 24
"""More rows than this, and only some of them are named."""


def name_axis(names: Sequence[str], most: int = MOST_NAMES) -> dict[str, Any]:
    """A vertical axis with a name at each place 0, 1, 2 …, or at every second or third; always at the last."""
    places = list(range(len(names) - 1, -1, -len(names) // most))[::-1]
    return {
        "tickmode": "array",
        "tickvals": places,
        "ticktext": [safe(names[place]) for place in places],
        "tickfont": {"size": 14 if len(places) <= 16 else 12},
        "showgrid": False,
        "ticks": "",
        "ticklabelstandoff": 6,
    }


def ink(share: float, anchors: tuple[str, ...], palette: Palette) -> str:
    """The colour of letters that can be read on the colour that stands for a share, 0 to 1, of a scale.

    What is no number has no colour: its letters stand on the page's own.
    """
    inks = _inks(anchors, palette)
    return palette.text if math.isnan(share) else inks[round(share * (len(inks) - 1))]


@cache
def _inks(anchors: tuple[str, ...], palette: Palette) -> tuple[str, ...]:
    """The colour of letters on each step of a scale."""
    grounds = ("#" + bytes(map(int, colour[4:-1].split(","))).hex() for _, colour in colour_scale(anchors))
    return tuple(max((palette.text, palette.background), key=lambda ink: contrast(ink, ground)) for ground in grounds)


def cell_numbers(
    values: np.ndarray,
    write: Callable[[float], str],
    ends: tuple[float, float],
    scale: tuple[str, ...],
    palette: Palette,
    *,
    width: int,
    size: int = 14,
    start: float = 0,
    marks: np.ndarray | None = None,
) -> dict[str, object]:
    """A trace: numbers in the cells of a map, float [row, column], in ink that can be read there; none for nan.

    `ends` are those of the colour `scale`, `width` is what the figure needs for them (pixels), `start` where the first
    column stands; `marks`, str [row, column], stand in place of some numbers.
    """
    rows, columns = np.nonzero(np.isfinite(values))
    shown = values[rows, columns].astype(np.float64)
    shares = np.clip((shown - ends[0]) / (ends[1] - ends[0]), 0, 1)
    over = np.full(len(shown), "") if marks is None else marks[rows, columns]
    return {
        "type": "scatter",
        "x": (columns + start).tolist(),
        "y": rows.tolist(),
        "mode": "text",
        "text": [str(mark) or write(value) for mark, value in zip(over, shown.tolist(), strict=True)],
        "textfont": {"size": size, "color": [ink(share, scale, palette) for share in shares.tolist()]},
        "hoverinfo": "skip",
        "meta": {"least_width": width},
        "name": "numbers",
    }
