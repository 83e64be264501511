"""The style sheet of the pages, style.css: what Streamlit's theme cannot say, and the bar of menus."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


def style(menu: int = 0) -> str:
    """The style sheet as HTML; the menu of the bar, counted from 1, holds the present page: 0 is none.

    The browser gets it with its first page (server/http.py), and again from each rerun: that says which menu it is,
    and is all there is where Streamlit's page is not the one that is known.
    """
    return f"<style>{_rules().replace('MENU', str(menu))}</style>"


@cache
def _rules() -> str:
    """Of style.css, without its comments."""
    written = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/", "", written, flags=re.DOTALL)
