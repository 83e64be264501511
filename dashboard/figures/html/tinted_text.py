"""A passage as running text, each token on a ground that stands for its number."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from dashboard.theme import LIGHT, Palette, contrast, hex_ramp


def tinted_text(
    tokens: Sequence[str],
    values: np.ndarray,
    sentences: Sequence[str],
    *,
    most: float,
    ends: tuple[str, str],
    signed: bool = False,
    palette: Palette = LIGHT,
) -> str:
    """HTML: float [token], from 0 to `most`, or from −most to most where `signed`; what is beyond is at the end.

    Each token's sentence is said by the pointer and read aloud. `ends` names the ends of the scale, shown below.
    """
    ramp = hex_ramp(palette.signed if signed else palette.scale)
    shares = np.clip(np.nan_to_num(values / most), -1.0 if signed else 0.0, 1.0)
    places = np.rint(((shares + 1) / 2 if signed else shares) * (len(ramp) - 1)).astype(int)
    words = "".join(_word(*each, ramp, palette) for each in zip(tokens, places, sentences, strict=True))
    scale = ",".join(ramp[:: len(ramp) // 8])
    bar = (
        f'<div style="display:flex;gap:8px;align-items:center;margin-top:6px;font-size:14px;color:{palette.muted}">'
        f"<span>{escape(ends[0])}</span>"
        f'<span style="width:110px;height:10px;background:linear-gradient(90deg,{scale})"></span>'
        f"<span>{escape(ends[1])}</span></div>"
    )
    return f'<div style="font-size:18px;line-height:30px">{words}</div>{bar}'


def _word(token: str, place: int, sentence: str, ramp: Sequence[str], palette: Palette) -> str:
    """One token; a line ends where the text's does."""
    ground = ramp[place]
    ink = max((palette.text, palette.background), key=lambda letters: contrast(letters, ground))
    said = escape(sentence, quote=True)
    box = (
        f'<span role="img" title="{said}" aria-label="{said}" style="background:{ground};color:{ink};'
        f'padding:2px 1px;margin-right:1px;border-radius:3px;white-space:pre-wrap">{escape(token)}</span>'
    )
    return f"{box}<br>" if token.rstrip("␣").endswith("↵") else box
