"""A passage with the guess under each token, as HTML; right and wrong differ by a mark as well as a colour."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from dashboard.figures.kit.token_axis import elided
from dashboard.theme import LIGHT, Palette

LETTERS = 14
"""Of a token or a guess; of longer ones the middle is left out, and the pointer says them in full."""


def guesses_strip(
    tokens: Sequence[str], guesses: Sequence[str], shares: np.ndarray, *, palette: Palette = LIGHT
) -> str:
    """Each token of a passage, and under it the guess where that was another; `shares`, float [token], are the guesses'
    probabilities, said by the pointer. A tick marks what was guessed; the lines are broken where the text's are."""
    boxes = []
    for place, (token, guess, share) in enumerate(zip(tokens, guesses, shares, strict=True)):
        boxes.append(_box(place, token, guess, float(share), palette))
        if token.rstrip("␣").endswith("↵"):
            boxes.append('<span style="flex-basis:100%"></span>')
    return f'<div style="display:flex;flex-wrap:wrap;gap:3px;align-items:flex-start">{"".join(boxes)}</div>'


def _box(place: int, token: str, guess: str, share: float, palette: Palette) -> str:
    right = token == guess
    said = f"{place + 1}: {token}, " + (
        f"guessed right, with {share:.2f}" if right else f"the guess was {guess}, with {share:.2f}"
    )
    colour, border = (palette.right, palette.right) if right else (palette.text, palette.grid)
    below = "✓" if right else escape(elided(guess, LETTERS))
    spoken = escape(said, quote=True)
    return (
        f'<span role="img" aria-label="{spoken}" title="{spoken}" style="display:block;text-align:center;padding:0 4px;'
        f"border:1.5px solid {border};border-radius:6px;background:{palette.surface};font-family:monospace;"
        f'white-space:pre;min-width:20px"><b style="display:block;font-size:16px;line-height:25px;color:{colour}">'
        f'{escape(elided(token, LETTERS))}</b><span style="display:block;font-size:14px;line-height:19px;'
        f'color:{palette.right if right else palette.muted}">{below}</span></span>'
    )
