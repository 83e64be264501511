"""Rows of tokens as HTML: right and wrong told apart by a mark as well as a colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from dashboard.theme import LIGHT, Palette

MARKS = {"given": "", "right": "✓", "wrong": "✗", "open": "·"}


@dataclass(frozen=True)
class Token:
    """A token, and what is to be said of it: given, right, wrong (`answer` is the right one), or open: nobody can know."""

    text: str
    verdict: Literal["given", "right", "wrong", "open"] = "given"
    answer: str | None = None


def token_strip(rows: Mapping[str, Sequence[Token]], palette: Palette = LIGHT) -> str:
    """One line of tokens for each name, as one HTML text; it wraps where there is no room."""
    lines = "".join(_line(name, tokens, palette) for name, tokens in rows.items())
    return f'<div style="display:flex;flex-wrap:wrap;gap:6px 36px;align-items:flex-start">{lines}</div>'


def _line(name: str, tokens: Sequence[Token], palette: Palette) -> str:
    boxes = "".join(_box(token, palette) for token in tokens)
    spoken = escape(f"{name}: {', '.join(_spoken(token) for token in tokens)}", quote=True)
    return (
        f'<div role="img" aria-label="{spoken}" style="display:flex;flex-wrap:wrap;gap:6px;align-items:flex-start">'
        f'<span style="color:{palette.muted};font-size:18px;line-height:40px;min-width:44px">{escape(name)}</span>'
        f"{boxes}</div>"
    )


def _box(token: Token, palette: Palette) -> str:
    colours = {"given": palette.text, "right": palette.right, "wrong": palette.wrong, "open": palette.muted}
    colour = colours[token.verdict]
    border = "dashed" if token.verdict == "open" else "solid"
    frame = palette.grid if token.verdict == "given" else colour
    mark = MARKS[token.verdict]
    beside = f'<span style="font-size:15px;margin-left:3px">{mark}</span>' if mark else ""
    below = (
        f'<span style="display:block;font-size:13px;line-height:16px;color:{palette.muted}">is {escape(token.answer)}</span>'
        if token.verdict == "wrong" and token.answer is not None
        else ""
    )
    return (
        f'<span style="text-align:center"><span style="display:inline-block;min-width:34px;padding:0 8px;'
        f"font:600 22px/38px monospace;color:{colour};border:1.5px {border} {frame};border-radius:8px;"
        f'background:{palette.surface}">{escape(token.text)}{beside}</span>{below}</span>'
    )


def _spoken(token: Token) -> str:
    if token.verdict == "wrong" and token.answer is not None:
        return f"{token.text} wrong, it is {token.answer}"
    return token.text if token.verdict == "given" else f"{token.text} {token.verdict}"
