"""One slim colour bar for every matrix: a line above it, its two ends named, so that the matrix keeps its place."""

from __future__ import annotations

from dashboard.theme import Palette, colour_scale

LENGTH = 48
"""Pixels from end to end: with its numbers no wider than the smallest matrix."""
ROOM = 22
"""Pixels that the bar takes from the height of a figure: its top margin."""


def scaled(low: float, high: float, anchors: tuple[str, ...]) -> dict[str, object]:
    """The colours of a heatmap from `low` to `high`, and the bar that shows them."""
    return {"zmin": low, "zmax": high, "colorscale": colour_scale(anchors), "colorbar": _slim_bar()}


def flat(colour: str) -> dict[str, object]:
    """One colour for a heatmap, and no bar."""
    return {"colorscale": [[0, colour], [1, colour]], "showscale": False}


def bar_layout(low: float, high: float, palette: Palette) -> dict[str, object]:
    """The layout around a matrix and its bar: room for it, the numbers at its ends, and no legend."""
    return {
        "showlegend": False,
        "margin": {"l": 4, "r": 16, "t": ROOM, "b": 4},
        "annotations": bar_ends(low, high, palette),
    }


def bar_ends(low: float, high: float, palette: Palette) -> list[dict[str, object]]:
    """Annotations: the numbers at the two ends of the bar."""
    return [
        {
            "x": 0.5,
            "xref": "paper",
            "xanchor": side,
            "xshift": shift * (LENGTH / 2 + 4),
            "y": 1.0,
            "yref": "paper",
            "yanchor": "middle",
            "yshift": 11,
            "text": end_text(value),
            "showarrow": False,
            "font": {"size": 13, "color": palette.muted},
        }
        for value, side, shift in ((low, "right", -1), (high, "left", 1))
    ]


def end_text(value: float) -> str:
    """The number at an end: three digits, and a minus sign as long as a plus."""
    return f"{value:.3g}".replace("-", "−")


def _slim_bar() -> dict[str, object]:
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
