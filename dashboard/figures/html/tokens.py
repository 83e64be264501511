"""Rows of tokens as HTML: right and wrong told apart by a mark as well as a colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from dashboard.theme import LIGHT, Palette

MARKS = {"given": "", "right": "✓", "wrong": "✕", "open": "·"}


@dataclass(frozen=True)
class Token:
    """A token, and its verdict: given, right, wrong (`answer` is the right one), or open: nobody can know.

    `flipped`: it is another one than in the row above.
    """

    text: str
    verdict: Literal["given", "right", "wrong", "open"] = "given"
    answer: str | None = None
    flipped: bool = False


def token_strip(rows: Mapping[str, Sequence[Token]], palette: Palette = LIGHT) -> str:
    """One line of tokens for each name, as one HTML text; the tokens wrap beside their name where there is no room."""
    lines = "".join(_line(name, tokens, palette) for name, tokens in rows.items())
    return f'<div style="display:flex;flex-wrap:wrap;gap:6px 36px;align-items:flex-start">{lines}</div>'


def _line(name: str, tokens: Sequence[Token], palette: Palette) -> str:
    boxes = "".join(_box(token, palette) for token in tokens)
    spoken = escape(f"{name}: {', '.join(_spoken(token) for token in tokens)}.", quote=True)
    return (
        f'<div role="img" aria-label="{spoken}" style="display:flex;min-width:0;gap:6px;align-items:flex-start">'
        f'<span style="flex:none;min-width:56px;color:{palette.muted};font-size:18px;line-height:42px">{escape(name)}'
        f'</span><span style="display:flex;flex-wrap:wrap;gap:6px;align-items:flex-start">{boxes}</span></div>'
    )


def _box(token: Token, palette: Palette) -> str:
    colour = {"given": palette.text, "right": palette.right, "wrong": palette.wrong, "open": palette.muted}[
        token.verdict
    ]
    border = {"given": f"1.5px solid {palette.grid}", "right": f"1.5px solid {colour}"}.get(
        token.verdict, f"{'2px dashed' if token.verdict == 'open' else '3px double'} {colour}"
    )
    mark = MARKS[token.verdict]
    beside = f'<span style="font-size:18px;margin-left:4px">{mark}</span>' if mark else ""
    wrong = token.verdict == "wrong" and token.answer is not None
    below = (
        f'<span style="display:block;font-size:15px;line-height:18px;color:{palette.muted}">is '
        f'<b style="color:{palette.text}">{escape(token.answer or "")}</b></span>'
        if wrong
        else ""
    )
    flip = f"outline:2px solid {palette.accent};outline-offset:1px;" if token.flipped else ""
    return (
        f'<span style="text-align:center"><span style="display:block;box-sizing:border-box;min-width:38px;height:42px;'
        f"padding:0 8px;font:600 24px/38px monospace;white-space:pre;color:{colour};border:{border};{flip}"
        f'border-radius:8px;background:{palette.surface}">{escape(token.text)}{beside}</span>{below}</span>'
    )


def _spoken(token: Token) -> str:
    return f"{_verdict(token)}, flipped" if token.flipped else _verdict(token)


def _verdict(token: Token) -> str:
    if token.verdict == "wrong" and token.answer is not None:
        return f"{token.text} wrong, it is {token.answer}"
    if token.verdict == "open":
        return f"{token.text}, which cannot be known"
    return token.text if token.verdict == "given" else f"{token.text} {token.verdict}"
