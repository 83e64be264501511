"""The look: two palettes, the fixed colour scales, and the Plotly template made from them.

Colours tell apart without their hue as well: marks, dashes and hatching stand beside them. The categorical colours
are after Okabe and Ito (2008): darker or lighter where theirs would fade into the background.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from functools import cache

import numpy as np
import plotly.graph_objects as go
from PIL import Image

FONT = '"Source Sans", "Source Sans Pro", "Helvetica Neue", Arial, sans-serif'
Rgb = tuple[int, int, int]
ColourScale = tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Palette:
    """What a colour means, once for light and once for dark."""

    dark: bool
    background: str
    surface: str
    text: str
    muted: str
    grid: str
    accent: str
    measured: str
    before: str
    right: str
    wrong: str
    chance: str
    ceiling: str
    forbidden: str
    hatch: str
    scale: tuple[str, ...]
    """Anchors of the scale of patterns, from 0 to 1; zero lies near the background."""
    signed: tuple[str, ...]
    """Anchors of the diverging scale, from the most negative to the most positive."""
    categorical: tuple[str, ...]


LIGHT = Palette(
    dark=False,
    background="#ffffff",
    surface="#f4f6fa",
    text="#1a2130",
    muted="#586174",
    grid="#e3e7ee",
    accent="#2456c8",
    measured="#2f6fd6",
    before="#a9b4c6",
    right="#00755a",
    wrong="#b3360b",
    chance="#a14a00",
    ceiling="#1a2130",
    forbidden="#d2d0cc",
    hatch="#a5a29b",
    scale=("#f3f6fd", "#a9c4f5", "#4f84dc", "#1f4a9e", "#0b1f4f"),
    signed=("#8a2d04", "#e08a4f", "#f6f6f6", "#5f96df", "#123f86"),
    categorical=(
        "#0072b2",
        "#d55e00",
        "#009e73",
        "#cc79a7",
        "#2a8bc4",
        "#a6761d",
        "#5b4ea3",
        "#666666",
        "#4b6a00",
        "#882255",
    ),
)
DARK = Palette(
    dark=True,
    background="#0f131b",
    surface="#181e29",
    text="#e9edf5",
    muted="#a3adbf",
    grid="#2a3240",
    accent="#8ab4ff",
    measured="#5f9df7",
    before="#5d6880",
    right="#4fd1a5",
    wrong="#ff9166",
    chance="#f2b45c",
    ceiling="#e9edf5",
    forbidden="#45464d",
    hatch="#6c6f7a",
    scale=("#141b29", "#23407a", "#3f7fd0", "#86c5ef", "#fbf8d0"),
    signed=("#ffb083", "#c0561a", "#1c222d", "#3b78c9", "#a9d2ff"),
    categorical=(
        "#56b4e9",
        "#e69f00",
        "#2fbf94",
        "#dd93bd",
        "#4fd8e8",
        "#f0e442",
        "#b5a8f0",
        "#b0b0b0",
        "#ff9166",
        "#c7d36f",
    ),
)


def palette(dark: bool) -> Palette:
    """The palette of a theme."""
    return DARK if dark else LIGHT


def pattern_colours(dark: bool) -> np.ndarray:
    """The scale of patterns as a table, uint8 [256, 3]: entry 255 · p is the colour of p."""
    return np.array(_ramp(palette(dark).scale, 256), dtype=np.uint8)


def share_colours(share: float, colours: Palette) -> tuple[str, str]:
    """Ground and letters for a share from 0 to 1: its place on the scale of patterns, and what reads best on it."""
    r, g, b = _ramp(colours.scale, 256)[round(255 * share)]
    ground = f"#{r:02x}{g:02x}{b:02x}"
    return ground, max((colours.text, colours.background), key=lambda letters: contrast(letters, ground))


@cache
def colour_scale(anchors: tuple[str, ...]) -> ColourScale:
    """Anchors as a Plotly colour scale, even in lightness between them."""
    return tuple((i / 32, f"rgb({r},{g},{b})") for i, (r, g, b) in enumerate(_ramp(anchors, 33)))


def hex_ramp(anchors: tuple[str, ...]) -> tuple[str, ...]:
    """A scale as 65 colours "#rrggbb", from its low end to its high one, for what is drawn without Plotly."""
    return tuple(f"#{r:02x}{g:02x}{b:02x}" for r, g, b in _ramp(anchors, 65))


@cache
def template(colours: Palette) -> go.layout.Template:
    """The Plotly template: quiet axes, no box, letters that are legible from the back row. A figure takes a copy."""
    axis = {
        "gridcolor": colours.grid,
        "linecolor": colours.grid,
        "zeroline": False,
        "automargin": True,
        "tickfont": {"size": 14},
        "title": {"font": {"size": 14, "color": colours.muted}, "standoff": 8},
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 14, "color": colours.text},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(colours.categorical),
            "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {
                "bgcolor": colours.surface,
                "bordercolor": colours.muted,
                "font": {"family": FONT, "size": 15, "color": colours.text},
                "align": "left",
            },
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "font": {"size": 13}},
        }
    )


@cache
def icon() -> str:
    """The anti-diagonal, small: the page's icon, as an address that holds it.

    A file that Streamlit serves goes with the last page that asked for it, while the next is being opened.
    """
    cells = np.full((4, 4, 3), rgb(LIGHT.scale[1]), dtype=np.uint8)
    cells[np.arange(4), 3 - np.arange(4)] = rgb(LIGHT.scale[3])
    file = io.BytesIO()
    Image.fromarray(cells.repeat(8, axis=0).repeat(8, axis=1)).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def rgb(colour: str) -> Rgb:
    """ "#rrggbb" as three numbers from 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


@cache
def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, 1 to 21 (WCAG 2.2, "contrast ratio")."""
    lighter, darker = sorted((float(_linear(rgb(c)) @ [0.2126, 0.7152, 0.0722]) for c in (one, other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@cache
def _ramp(anchors: tuple[str, ...], n: int) -> tuple[Rgb, ...]:
    """`n` colours through the anchors, interpolated in Oklab (Ottosson, 2020) so that equal steps look equal."""
    points = np.array([_to_oklab(rgb(anchor)) for anchor in anchors])
    # Anchors are spread by how far apart they look, not evenly.
    distance = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    middle = len(anchors) // 2
    if len(anchors) % 2 and anchors in (LIGHT.signed, DARK.signed):
        distance[: middle + 1] *= 0.5 / distance[middle]
        distance[middle:] = 0.5 + 0.5 * (distance[middle:] - distance[middle]) / (distance[-1] - distance[middle])
    else:
        distance /= distance[-1]
    where = np.linspace(0, 1, n)
    mixed = np.stack([np.interp(where, distance, points[:, channel]) for channel in range(3)], axis=1)
    return tuple(_from_oklab(colour) for colour in mixed)


_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def _linear(colour: Rgb) -> np.ndarray:
    """sRGB, 0 to 255, as linear light."""
    share = np.array(colour) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def _to_oklab(colour: Rgb) -> np.ndarray:
    return _TO_LAB @ np.cbrt(_TO_LMS @ _linear(colour))


def _from_oklab(lab: np.ndarray) -> Rgb:
    linear = np.clip(np.linalg.inv(_TO_LMS) @ (np.linalg.inv(_TO_LAB) @ lab) ** 3, 0, 1)
    share = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    r, g, b = (int(value) for value in np.rint(share * 255))
    return r, g, b
