"""Symbols with an index, as they are drawn: what code calls "d_model" or "k_3" has its index below the line."""

from __future__ import annotations

import re
from html import escape

INDEXED = re.compile(r"(?<![A-Za-z_])(tanh|[A-Za-zα-ω])_(\d+|[A-Za-z]+(?![A-Za-z_]))")
LOWERED = r"\1<sub>\2</sub>"
STEADY = r'\1<sub style="line-height:0;font-size:0.75em">\2</sub>'
"""The same where an index must not make its line of text higher."""


def lowered(text: str) -> str:
    """A text for Plotly, which reads no other tag here: `W_O` as `W<sub>O</sub>`."""
    return INDEXED.sub(LOWERED, text)


def lowered_html(text: str) -> str:
    """A text as HTML: all that it holds is safe, and its indices stand below the line."""
    return INDEXED.sub(STEADY, escape(text))
