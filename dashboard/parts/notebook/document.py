"""What the reader of documents (components/web/document/) shows of all heads: their grid, and one of them large."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from typing import Any

import plotly.graph_objects as go

from dashboard import theme
from dashboard.components import head_grid, plot
from dashboard.components.documents.colours import variables
from dashboard.components.documents.pages import packed
from dashboard.components.head_grid import HeadGrid, heads_of, panels_of
from dashboard.components.registration import declared
from dashboard.figures.head_focus import Subject, View, head_figure
from dashboard.models.long_inputs import from_afar
from dashboard.parts.head_focus import LONG, strongest
from dashboard.parts.notebook.heads import remarks, seen_attentions
from transformer.analysis.findings import Attention, Head
from transformer.observation import Seen

VERSION = 1
"""Of documents, as web/document/write.js counts them."""
GRID, LARGE = "heads", "head"
"""The keys of the grid and of the head in focus."""
FEW, MANY, WIDE = 8, 11, 10
"""Shares of the width: of the grid, for few and for many heads in a row, and of the large head. Twelve heads in a row
have room beside it on a projector."""
ABOUT = "Each small matrix is a head. A row is a query, a column is a key. Click a head to see it large."


@dataclass(frozen=True, eq=False)
class AllHeads:
    """The heads of one forward pass, in the colours of the light or of the dark theme."""

    attentions: Mapping[str, Attention]
    title: str = ""
    """Without one it is how many heads there are, on how many tokens."""
    unseen: Sequence[str] = ()
    """A sentence for each part of the model that could not be seen."""
    remarks: Sequence[str] = ()
    """Sentences on what is shown: which sequence of how many, and what of it is padding."""
    link: str = "pattern"
    """What the grid and the large head share their hovered cell by: another one for each that stands in one page."""
    dark: bool = False

    @cached_property
    def heads(self) -> list[Head]:
        return heads_of(self.attentions)

    @property
    def headline(self) -> str:
        if self.title:
            return self.title
        heads, last = len(self.heads), list(self.attentions.values())[-1]
        count = (last.whole or last.mask.shape)[0]
        tokens = f"{count} token{'s' * (count != 1)}"
        return f"{heads} attention head{'s' * (heads != 1)} on {tokens}"

    def document(self, focus: int, *, whole: bool) -> dict[str, Any]:
        """The document (see web/document/write.js), with this head large.

        `whole`, it holds the message of every head.
        """
        grid = HeadGrid(
            panels_of(self.attentions),
            key=GRID,
            focus=None,  # the large head says which it is
            alt=f"Attention patterns of {len(self.heads)} heads; one of them is enlarged.",
            link=self.link,
        ).pack(self.palette)
        messages = [_text(packed(self.message(number))) for number in range(len(self.heads))] if whole else []
        small = {"name": "head_grid", "key": GRID, "template": head_grid.HTML, "message": _text(grid), "chooses": True}
        large = {
            "name": "plot",
            "key": LARGE,
            "template": plot.HTML,
            "message": _text(self.message(focus)),
            "choice": {"of": GRID, "messages": messages},
        }
        in_a_row = max(head.index for head in self.heads) + 1
        sides = ((max(FEW, min(in_a_row, MANY)), [small, _words("caption", ABOUT)]), (WIDE, [large]))
        return {
            "version": VERSION,
            "title": self.headline,
            "link": "",
            "made": datetime.now(UTC).isoformat(),
            "software": f"Attention Lab {declared()['project']['version']}",
            "makers": [],
            "theme": variables(self.dark),
            "lecture": None,
            "question": "",
            "kind": "",
            "covered": False,
            "terms": [],
            "parts": [
                _words("heading", self.headline, "h1"),
                *(_words("caption", sentence) for sentence in self.remarks),
                *(_words("alert", sentence) for sentence in self.unseen),
                {"columns": [{"width": width, "parts": parts} for width, parts in sides], "key": ""},
            ],
        }

    def message(self, number: int) -> bytes:
        """One head large, as the plot takes it, with a sentence on what it shows."""
        head = self.heads[number]
        seen = self._afar[head.site]
        alt = f"Head {head.short}, {head.kind}. {strongest(seen.pattern[head.index], seen)}"
        return plot.pack_figure(self.figure(number), key=LARGE, alt=alt, height=None)

    def figure(self, number: int) -> go.Figure:
        """One head large: its pattern and its arcs; of a long input the strongest cell of each block."""
        head = self.heads[number]
        seen = self._afar[head.site]
        blocks = f": strongest of {seen.factor} × {seen.factor}" if seen.factor > 1 else ""
        return head_figure(
            Subject(
                head=str(head),
                number=number,
                queries=seen.queries,
                keys=seen.keys,
                mask=seen.mask,
                size=seen.whole or (seen.mask.shape[0], seen.mask.shape[1]),
                factor=seen.factor,
            ),
            [View("pattern", f"Pattern{blocks}", seen.pattern[head.index], 0.0, 1.0)],
            link=self.link,
            palette=self.palette,
        )

    @property
    def palette(self) -> theme.Palette:
        return theme.palette(self.dark)

    @cached_property
    def _afar(self) -> dict[str, Attention]:
        return {site: from_afar(attention, LONG, words=True) for site, attention in self.attentions.items()}


def all_heads(
    seen: Seen, names: Sequence[str], sources: Sequence[str], sequence: int, *, title: str = "", dark: bool = False
) -> AllHeads:
    """The heads of what `observe` or `capture` returned, on one sequence of its batch. Raises UserError."""
    found = seen_attentions(seen, names, sources, sequence)
    unseen = getattr(seen, "unseen", ())
    said = (*getattr(seen, "remarks", ()), *remarks(seen, found, sequence))
    return AllHeads(found, title=title, unseen=unseen, remarks=said, dark=dark)


def _words(kind: str, text: str, tag: str = "p") -> dict[str, str]:
    return {"words": f"<{tag}>{escape(text)}</{tag}>", "kind": kind}


def _text(message: bytes) -> str:
    return base64.b64encode(message).decode()
