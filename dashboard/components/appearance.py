"""Light or dark, and the palette that goes with it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard import theme
from dashboard.components.payload import pack
from dashboard.components.registration import renderer

HTML = '<div class="al-appearance" aria-hidden="true"></div>'


def is_dark() -> bool:
    return st.context.theme.type == "dark"


def palette() -> theme.Palette:
    return theme.palette(is_dark())


def follow(on_change: Callable[[], None]) -> None:
    """Have everything drawn anew when the browser's theme is another than the one that this rerun draws for.

    Nothing is to be seen of it. Streamlit tells the script of a theme with each rerun, and asks for none by itself.
    `on_change` is called before that rerun.
    """
    mount = renderer("appearance", html=HTML, isolate_styles=False)
    mount(key="appearance", data=pack({"dark": is_dark()}, b""), on_theme_change=on_change)
