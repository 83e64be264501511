"""The screen: a Streamlit dashboard over the `transformer` package. `streamlit run dashboard/app.py`.

Two of its figures need no server: `show` draws all heads in a notebook, `to_html` writes them into a file.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {"show": "parts.notebook.show", "to_html": "parts.notebook.page"}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
