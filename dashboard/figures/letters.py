"""Letters in the cells of a heatmap and beside its rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from dashboard.figures.token_axis import safe
from dashboard.theme import Palette, colour_scale, contrast

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
    """The colour of letters that can be read on the colour that stands for a share, 0 to 1, of a scale."""
    inks = _inks(anchors, palette)
    return inks[round(share * (len(inks) - 1))]


@cache
def _inks(anchors: tuple[str, ...], palette: Palette) -> tuple[str, ...]:
    """The colour of letters on each step of a scale."""
    grounds = ("#" + bytes(map(int, colour[4:-1].split(","))).hex() for _, colour in colour_scale(anchors))
    return tuple(max((palette.text, palette.background), key=lambda ink: contrast(ink, ground)) for ground in grounds)
