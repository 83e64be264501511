"""What was measured of two codes, as an HTML table: a row for each question, with a mark where an answer is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from dashboard.theme import LIGHT, Palette

MARK = "✕"
"""What stands beside a number that says that something is wrong."""


@dataclass(frozen=True)
class Row:
    """One thing that was measured of both."""

    name: str
    asks: str
    """What is measured, in a few words; may be empty."""
    wrong: str
    right: str
    rings: bool
    """Does the number of the wrong code say that something is wrong?"""
    right_rings: bool = False
    when: str = ""
    """From where on a number says so; may be empty."""


def measured_table(
    rows: Sequence[Row], headings: tuple[str, str, str, str], *, spoken: str, palette: Palette = LIGHT
) -> str:
    """A row for each question. `headings` name the columns; the last is left out where no row says when it rings."""
    shown = headings if any(row.when for row in rows) else headings[:3]
    heads = "".join(
        f'<th scope="col" style="text-align:{"left" if i in (0, 3) else "right"};padding:4px 10px;font-weight:600;'
        f'vertical-align:bottom;color:{palette.muted};border-bottom:2px solid {palette.grid}">{escape(text)}</th>'
        for i, text in enumerate(shown)
    )
    body = "".join(_row(row, len(shown) > 3, palette) for row in rows)
    return (
        f'<div style="overflow-x:auto"><table aria-label="{escape(spoken, quote=True)}" '
        f'style="width:100%;min-width:330px;border-collapse:collapse;font-size:15px;line-height:20px;'
        f'color:{palette.text};font-variant-numeric:tabular-nums"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(row: Row, with_when: bool, palette: Palette) -> str:
    asks = f'<br><span style="color:{palette.muted};font-size:14px">{escape(row.asks)}</span>' if row.asks else ""
    bar = palette.wrong if row.rings else "transparent"
    when = (
        f'<td style="padding:4px 10px;color:{palette.muted};font-size:14px">{escape(row.when)}</td>'
        if with_when
        else ""
    )
    return (
        f'<tr style="border-bottom:1px solid {palette.grid}">'
        f'<th scope="row" style="text-align:left;font-weight:400;padding:4px 10px;border-left:4px solid {bar}">'
        f"<b>{escape(row.name)}</b>{asks}</th>"
        f"{_cell(row.wrong, row.rings, palette)}{_cell(row.right, row.right_rings, palette)}{when}</tr>"
    )


def _cell(text: str, rings: bool, palette: Palette) -> str:
    said = escape(text).replace(": ", ":<wbr> ")
    if rings:
        said = f'<b style="color:{palette.wrong}">{MARK}&nbsp;{said}</b>'
    return f'<td style="text-align:right;padding:4px 10px;overflow-wrap:anywhere">{said}</td>'
