"""Wrong code and right code as HTML, line beside line; what differs is marked by a sign, a bar and bold letters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from html import escape

from dashboard.theme import LIGHT, Palette

Pair = tuple[str | None, str | None]
"""A line of the wrong code and the one of the right code beside it; None where the other code has a line more."""
SIGNS = {"-": "−", "+": "+"}
"""Before a line that only the wrong code has, and one that only the right code has."""
WORDS = re.compile(r"\w+|\s+|[^\w\s]")


def pairs(difference: Sequence[str]) -> list[Pair]:
    """The lines of both codes side by side, from the difference ("- ", "+ " or two blanks before each line)."""
    found: list[Pair] = []
    wrong: list[str] = []
    right: list[str] = []

    def close() -> None:
        for i in range(max(len(wrong), len(right))):
            found.append((wrong[i] if i < len(wrong) else None, right[i] if i < len(right) else None))
        wrong.clear()
        right.clear()

    for line in difference:
        if line.startswith("- "):
            wrong.append(line[2:])
        elif line.startswith("+ "):
            right.append(line[2:])
        else:
            close()
            found.append((line[2:], line[2:]))
    close()
    return found


def code_panes(difference: Sequence[str], *, palette: Palette = LIGHT) -> tuple[str, str]:
    """The wrong code and the right code, each as HTML of its own, with as many lines as the other."""
    wrong, right = [], []
    for one, other in pairs(difference):
        if one == other:
            same = _line(" ", escape(one or ""), palette.muted, "transparent", bold=False)
            wrong.append(same)
            right.append(same)
            continue
        first, second = _marked(one or "", other or "")
        wrong.append(_differing("-", one, first, palette.wrong))
        right.append(_differing("+", other, second, palette.right))
    return _pane(wrong, palette), _pane(right, palette)


def _pane(lines: Iterable[str], palette: Palette) -> str:
    return (
        f'<div style="font:14px/21px monospace;background:{palette.surface};color:{palette.text};border-radius:8px;'
        f'padding:8px 0">{"".join(lines)}</div>'
    )


def _differing(sign: str, code: str | None, marked: str, colour: str) -> str:
    if code is None:  # the other code has a line here
        return _line(" ", "&nbsp;", colour, "transparent", bold=False)
    return _line(SIGNS[sign], marked, colour, colour, bold=True)


def _line(sign: str, code: str, colour: str, bar: str, *, bold: bool) -> str:
    """A line with its sign before it; one that is too long goes on below, to the right of where it began."""
    weight = ";font-weight:700" if bold else ""
    return (
        f'<div style="display:flex;border-left:4px solid {bar};color:{colour}{weight}">'
        f'<span style="flex:none;width:22px;text-align:center">{sign}</span>'
        '<span style="min-width:0;flex:1;padding:0 8px 0 16px;text-indent:-16px;white-space:pre-wrap;'
        f'overflow-wrap:anywhere">{code or "&nbsp;"}</span></div>'
    )


def _marked(one: str, other: str) -> tuple[str, str]:
    """Two lines of code as HTML, with what only one of them has underlined."""
    words = WORDS.findall(one), WORDS.findall(other)
    texts: tuple[list[str], list[str]] = ([], [])
    for kind, a, b, c, d in SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        for text, part in ((texts[0], words[0][a:b]), (texts[1], words[1][c:d])):
            said = escape("".join(part))
            text.append(said if kind == "equal" or not said.strip() else f"<u>{said}</u>")
    return "".join(texts[0]), "".join(texts[1])
