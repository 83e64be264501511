"""Lines against which the data are read, frames, and the names beside them: Plotly's shapes and annotations."""

from __future__ import annotations

import math

import numpy as np

from dashboard.theme import Palette, rgb


def level(y: float, line: dict[str, object]) -> dict[str, object]:
    """A shape: a line at the height `y`, from side to side."""
    return {"type": "line", "x0": 0, "x1": 1, "xref": "x domain", "y0": y, "y1": y, "yref": "y", "line": line}


def upright(x: float, line: dict[str, object]) -> dict[str, object]:
    """A shape: a line at the place `x`, from the bottom to the top."""
    return {"type": "line", "x0": x, "x1": x, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain", "line": line}


def frame(left: float, low: float, right: float, high: float, line: dict[str, object]) -> dict[str, object]:
    """A shape: a rectangle from corner to corner."""
    return {"type": "rect", "x0": left, "y0": low, "x1": right, "y1": high, "line": line}


def level_name(y: float, text: str, colour: str, palette: Palette, *, above: bool) -> dict[str, object]:
    """An annotation: the name of a level, over it on the right or else under it on the left.

    A loss starts high on the left, ends low on the right, and does not pass its floor: it meets neither.
    """
    return {
        "x": 0.995 if above else 0.005,
        "xref": "paper",
        "xanchor": "right" if above else "left",
        "y": y,
        "yanchor": "bottom" if above else "top",
        "text": text,
        "showarrow": False,
        "borderpad": 1,
        "bgcolor": veil(palette),
        "font": {"color": colour, "size": 14},
    }


def end_name(y: float, text: str, colour: str) -> dict[str, object]:
    """An annotation: the name of a level at the right end of its line, outside the plot, where nothing else is."""
    return {
        "x": 1.0,
        "xref": "paper",
        "xanchor": "left",
        "xshift": 3,
        "y": y,
        "yanchor": "middle",
        "text": text,
        "align": "left",
        "showarrow": False,
        "font": {"size": 14, "color": colour},
    }


def interval_bars(
    values: np.ndarray, low: np.ndarray, high: np.ndarray, colour: str, *, width: int = 3, thickness: float = 1.2
) -> dict[str, object]:
    """The bars of intervals about values, all float [point], for a trace's `error_y`; nan where there is none."""
    return {
        "array": np.maximum(high - values, 0).astype(np.float32),
        "arrayminus": np.maximum(values - low, 0).astype(np.float32),
        "color": colour,
        "thickness": thickness,
        "width": width,
    }


def veil(palette: Palette) -> str:
    """The background, a little transparent: what a name stands on where lines may pass."""
    r, g, b = rgb(palette.background)
    return f"rgba({r},{g},{b},0.8)"


def waiting(text: str, palette: Palette) -> dict[str, object]:
    """An annotation: words in the middle of a plot that has nothing to show yet."""
    return {
        "x": 0.5,
        "y": 0.5,
        "xref": "paper",
        "yref": "paper",
        "text": text,
        "showarrow": False,
        "font": {"size": 15, "color": palette.muted},
    }


DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up")


def round_up(value: float) -> float:
    """Rounded up to 1, 1.5, 2, 3, … times a power of ten, so that an axis moves seldom; 0.1 at least."""
    power = 10.0 ** math.floor(math.log10(max(value, 0.1)))
    return next(power * f for f in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if value <= power * f * (1 + 1e-9))
