"""An axis with one tick a token, at its place: equal tokens stay apart, and labels never touch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

MOST_LABELS, MOST_WORDS = 40, 20
"""More tokens than this, or more where there are words among them, and only some of them get a label."""
SHORT = 3
"""Letters of the longest token that is no word: SEP."""
LONGEST = 12
"""Of longer tokens the middle is left out on the axis; hovering says them in full."""
SMALL_PLOT = 160
"""Pixels of the smallest matrix that is to be legible."""
LINE, BETWEEN = 10, 4
"""Pixels from one line of small letters to the next, and between two labels in one, at least."""
DIGIT = 0.52
"""The width of a letter as a share of its height."""


def token_axis(title: str, labels: Sequence[str], *, upright: bool = True, length: float = 0) -> dict[str, Any]:
    """A Plotly axis over places 0, 1, 2, …; `upright` for the vertical one, whose labels have a line each.

    Where it is known how many pixels long it is, only as many labels are written as have room for a line.
    """
    places = labelled(labels, every=math.ceil(LINE * len(labels) / length) if length else 1)
    size = 14 if len(places) <= 12 else 12 if len(places) <= 24 else 10
    shown = [elided(labels[place]) for place in places]
    angle = 0
    if not upright:
        room = length / len(shown) - BETWEEN if length else SMALL_PLOT / len(shown)
        if _touch(shown, room, size):
            # Lone long tokens among short ones go a line lower; many of them stand on end.
            upper = [text if len(text) == 1 else "" for text in shown]
            lower = [text if len(text) > 1 else "" for text in shown]
            if _touch(upper, room, size) or _touch(lower, room, size):
                angle = -90
            else:
                shown = [text if len(text) == 1 else f"\n{text}" for text in shown]
    return {
        "title": {"text": title},
        "tickmode": "array",
        "tickvals": places,
        "ticktext": [lines_of(text) for text in shown],
        "tickfont": {"size": size},
        "tickangle": angle,
        "showgrid": False,
        "ticks": "",
    }


def matrix_axes(down: tuple[str, Sequence[str]], across: tuple[str, Sequence[str]]) -> dict[str, dict[str, object]]:
    """Both axes of a matrix with square cells, each a title and its tokens; the first row stands on top."""
    rows, columns = len(down[1]), len(across[1])
    return {
        "xaxis": {**token_axis(*across, upright=False), "range": [-0.5, columns - 0.5], "constrain": "domain"},
        "yaxis": {
            **token_axis(*down),
            "autorange": False,
            "range": [rows - 0.5, -0.5],
            "scaleanchor": "x",
            "constrain": "domain",
            "constraintoward": "top",
        },
    }


def safe(text: str) -> str:
    """Plotly reads tags in labels and hover texts; a token is not one."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def lines_of(text: str) -> str:
    """The same for words of several lines."""
    return safe(text).replace("\n", "<br>")


def labelled(labels: Sequence[str], words: int = MOST_WORDS, *, every: int = 1) -> list[int]:
    """The places that get a label, `every` so many at most; no more than so many where there are words."""
    wordy = max(map(len, labels), default=0) > SHORT
    return named(labels, max(every, -(-len(labels) // (words if wordy else MOST_LABELS))))


def named(labels: Sequence[str], every: int) -> list[int]:
    """Which labels are written where each needs the room of `every`: as many as have it, and words before blanks and
    commas, of which every other token of a text is one: one at the end may go without."""
    found: list[int] = []
    start = 0
    while start < len(labels):
        near = range(start, min(start + every, len(labels)))
        word = next((place for place in near if any(letter.isalnum() for letter in labels[place])), None)
        if word is None and found and len(near) < every:
            break
        found.append(start if word is None else word)
        start = found[-1] + every
    return found


def elided(text: str, most: int = LONGEST) -> str:
    """A text in one line, its middle left out where it has more letters than `most`."""
    if len(text) > most:
        text = f"{text[: most // 2]}…{text[most // 2 + 1 - most :]}" if most > 2 else f"{text[: most - 1]}…"
    return text.replace("\n", "↵")


def span(first: int, last: int) -> str:
    """From where to where, both told: "9–12"; "13" where they are one."""
    return str(first) if first == last else f"{first}–{last}"


def breadth(text: str, size: float) -> float:
    """Pixels that a text is wide in letters `size` high, rather too many than too few: wide ones count for more."""
    return size * sum(0.95 if c in "mwMW%@…" else 0.68 if c.isupper() else 0.56 for c in text)


def _touch(labels: Sequence[str], room: float, size: int) -> bool:
    """Whether two neighbours' labels would touch, `room` pixels apart."""
    placed = [(i * room, len(text) * size * DIGIT / 2) for i, text in enumerate(labels) if text]
    return any(right - left < half + other for (left, half), (right, other) in pairwise(placed))
