"""One slim colour bar for every matrix: a line above it, its two ends named, so that the matrix keeps its place."""

from __future__ import annotations

from dashboard.theme import Palette

LENGTH = 110
"""Pixels from end to end."""
ROOM = 22
"""Pixels that the bar takes from the height of a figure: its top margin."""


def slim_bar() -> dict[str, object]:
    """The `colorbar` of a heatmap: horizontal, above the middle of the plot, without ticks."""
    return {
        "orientation": "h",
        "thickness": 8,
        "lenmode": "pixels",
        "len": LENGTH,
        "x": 0.5,
        "xanchor": "center",
        "xpad": 0,
        "y": 1.0,
        "yanchor": "bottom",
        "ypad": 7,
        "outlinewidth": 0,
        "showticklabels": False,
        "ticks": "",
    }


def bar_ends(low: float, high: float, palette: Palette) -> list[dict[str, object]]:
    """Annotations: the numbers at the two ends of the bar."""
    return [
        {
            "x": 0.5,
            "xref": "paper",
            "xanchor": side,
            "xshift": shift * (LENGTH / 2 + 5),
            "y": 1.0,
            "yref": "paper",
            "yanchor": "middle",
            "yshift": 11,
            "text": _short(value),
            "showarrow": False,
            "font": {"size": 13, "color": palette.muted},
        }
        for value, side, shift in ((low, "right", -1), (high, "left", 1))
    ]


def _short(value: float) -> str:
    """Three digits, and a minus sign as long as a plus."""
    return f"{value:.3g}".replace("-", "−")
