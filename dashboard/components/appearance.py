"""Light or dark, and the palette that goes with it."""

from __future__ import annotations

import streamlit as st

from dashboard import theme


def is_dark() -> bool:
    return st.context.theme.type == "dark"


def palette() -> theme.Palette:
    return theme.palette(is_dark())
