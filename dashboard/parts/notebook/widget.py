"""All heads of one forward pass in a notebook: a widget for JupyterLab, VS Code, Colab and marimo, by anywidget.

https://anywidget.dev. What it shows is the document of `document.py`, in the reader of all documents; here Python is
asked for the head that is clicked, and for plotly.js once a notebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import anywidget
import traitlets

from dashboard.components.documents.pages import packed_plotly, widget_script
from dashboard.parts.notebook.document import GRID, LARGE, AllHeads
from transformer.analysis.findings import Head


class HeadsWidget(anywidget.AnyWidget):
    """All heads small, and beside them the one in focus large; `head` says which it is, `focus` its number."""

    _esm = widget_script()
    document = traitlets.Dict().tag(sync=True)
    message = traitlets.Bytes().tag(sync=True)
    """The head in focus, as the plot takes it."""
    focus = traitlets.Int().tag(sync=True)
    dark = traitlets.Bool().tag(sync=True)
    """Whether the notebook is dark; the browser says so."""
    chooses = traitlets.Unicode(GRID).tag(sync=True)
    changes = traitlets.Unicode(LARGE).tag(sync=True)

    def __init__(self, shown: AllHeads, focus: int) -> None:
        # Several widgets may stand in one page: each has a link of its own.
        self._shown = replace(shown, link=f"pattern-{uuid4().hex[:12]}")
        super().__init__(
            document=self._shown.document(focus, whole=False), message=self._shown.message(focus), focus=focus
        )
        self.on_msg(self._answer)

    @property
    def head(self) -> Head:
        """The head in focus: `str(widget.head)` is its path, "decoder.1.self_attention.3"."""
        return self._shown.heads[self.focus]

    def __repr__(self) -> str:
        return f"{self._shown.headline}; head {self.head.short} is large"

    @traitlets.validate("focus")
    def _known(self, proposal: Any) -> int:
        number: int = proposal.value
        if not 0 <= number < len(self._shown.heads):
            raise traitlets.TraitError(f"focus is the number of a head, 0 to {len(self._shown.heads) - 1}.")
        return number

    @traitlets.observe("focus")
    def _enlarge(self, change: Any) -> None:
        self.message = self._shown.message(self.focus)

    @traitlets.observe("dark")
    def _recolour(self, change: Any) -> None:
        self._shown = replace(self._shown, dark=self.dark)
        self.document = self._shown.document(self.focus, whole=False)
        self.message = self._shown.message(self.focus)

    def _answer(self, widget: Any, content: Any, buffers: Sequence[Any]) -> None:
        if content == "plotly":
            self.send("plotly", [packed_plotly()])
