"""The small pictures on the cards of the overview, as HTML: waves, a mask, bars."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape

import numpy as np
from PIL import Image

from dashboard.theme import LIGHT, Palette, hex_ramp, rgb

HIGH = "clamp(108px, 12vh, 160px)"
"""How high they are: more on a large screen."""


def cells(values: np.ndarray, low: float, high: float, alt: str, *, palette: Palette = LIGHT) -> str:
    """float [row, column] as cells on the diverging scale from `low` to `high`, as wide as there is room."""
    ramp = np.array([rgb(colour) for colour in hex_ramp(palette.signed)], dtype=np.uint8)
    share = np.clip((values - low) / (high - low), 0, 1)
    return _image(ramp[np.round(share * (len(ramp) - 1)).astype(int)], alt, "width:100%")


def mask_cells(visible: np.ndarray, alt: str, *, palette: Palette = LIGHT) -> str:
    """bool [query, key]: a square of cells, those that may be seen in the colour of what is measured."""
    colours = np.array([rgb(palette.forbidden), rgb(palette.measured)], dtype=np.uint8)
    return _image(colours[visible.astype(int)], alt, "aspect-ratio:1;flex:none")


def bars(shares: np.ndarray, strong: Sequence[bool], alt: str, *, palette: Palette = LIGHT) -> str:
    """float [bar], 0 to 1, as bars from a common ground; those that are not `strong` are paler."""
    marks = "".join(
        f'<span style="flex:1;border-radius:2px 2px 0 0;min-height:2px;height:{100 * float(share):.1f}%;'
        f'background:{palette.measured if full else palette.before}"></span>'
        for share, full in zip(shares, strong, strict=True)
    )
    return (
        f'<span role="img" aria-label="{escape(alt, quote=True)}" style="display:flex;flex:1;min-width:0;gap:2px;'
        f'align-items:flex-end;height:{HIGH};border-bottom:1px solid {palette.muted}">{marks}</span>'
    )


def beside(*pictures: str) -> str:
    """Pictures in a row."""
    return f'<div style="display:flex;gap:14px;align-items:flex-end;height:{HIGH}">{"".join(pictures)}</div>'


def _image(colours: np.ndarray, alt: str, width: str) -> str:
    file = io.BytesIO()
    Image.fromarray(colours).save(file, "PNG")
    return (
        f'<img alt="{escape(alt, quote=True)}" style="display:block;{width};height:{HIGH};image-rendering:pixelated;'
        f'border-radius:4px" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'
    )
