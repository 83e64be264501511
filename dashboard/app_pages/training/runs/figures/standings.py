"""Who stands where, as HTML beside the curves: the same colours, dashes and marks, and the words for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from dashboard.app_pages.training.runs.figures.curves import MARKS, colours
from dashboard.theme import LIGHT, Palette

STROKES = (
    "{0}",
    "repeating-linear-gradient(90deg,{0} 0 9px,transparent 9px 14px)",
    "repeating-linear-gradient(90deg,{0} 0 3px,transparent 3px 6px)",
    "repeating-linear-gradient(90deg,{0} 0 9px,transparent 9px 13px,{0} 13px 15px,transparent 15px 19px)",
)
"""The dashes of the curves, as backgrounds: st.html leaves out SVG."""


@dataclass(frozen=True)
class Row:
    """One run: what it is called, what became of it, and what that means."""

    name: str
    outcome: str
    meaning: str = ""
    folder: str = ""
    """The run's own name, where it is called something else here."""


def standings_list(rows: Sequence[Row], palette: Palette = LIGHT) -> str:
    """One entry a run, in the order of the curves, as one HTML text."""
    entries = "".join(_entry(row, place, palette) for place, row in enumerate(rows))
    return (
        '<ul style="list-style:none;margin:0;padding:0;display:grid;gap:6px 28px;'
        f'grid-template-columns:repeat(auto-fit,minmax(min(100%,380px),1fr))">{entries}</ul>'
    )


def _entry(row: Row, place: int, palette: Palette) -> str:
    colour = colours(palette)[place]
    stroke = f'<span style="width:19px;height:3px;background:{STROKES[place].format(colour)}"></span>'
    line = (
        '<span aria-hidden="true" style="flex:none;display:flex;align-items:center;gap:2px;height:24px">'
        f'{stroke}<span style="color:{colour}">{MARKS[place]}</span>{stroke}</span>'
    )
    folder = f' <span style="color:{palette.muted}">({escape(row.folder)})</span>' if row.folder else ""
    meaning = (
        f'<br><span style="color:{palette.muted};font-size:15px">{escape(row.meaning)}</span>' if row.meaning else ""
    )
    return (
        f'<li style="display:flex;gap:10px;margin:0;color:{palette.text};font-size:16px;line-height:1.5">{line}'
        f'<span style="min-width:0;overflow-wrap:anywhere"><b>{escape(row.name)}</b>{folder}: '
        f"{escape(row.outcome)}.{meaning}</span></li>"
    )
