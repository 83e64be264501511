"""Words that several pages say, and the code behind a picture."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import streamlit as st


def orientation() -> str:
    """Which side is which; said under every pattern."""
    return "Row = query (who looks), column = key (looked at). Head 1.3: layer 1, head 3, from 0; positions from 1."


def show_code(*functions: Callable[..., Any] | type) -> None:
    """The very functions that computed the picture, folded away."""
    with st.expander("Show the code", icon=":material/code:"):
        for function in functions:
            st.code(inspect.getsource(inspect.unwrap(function)), language="python")
