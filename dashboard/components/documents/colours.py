"""The colours of a document, as our style sheets call them: what they are in Streamlit's theme."""

from __future__ import annotations

from dashboard import theme

PRIMARY = {False: "#2456c8", True: "#3b70da"}
"""Of the light and the dark theme, as .streamlit/config.toml has them: dark enough for white letters."""


def variables(dark: bool) -> dict[str, str]:
    """The custom properties of CSS by their names, with their values in the light or the dark theme."""
    colours = theme.palette(dark)
    return {
        "--st-font": theme.FONT,
        "--st-text-color": colours.text,
        "--st-background-color": colours.background,
        "--st-secondary-background-color": colours.surface,
        "--st-border-color": colours.grid,
        "--st-primary-color": PRIMARY[dark],
        "--st-link-color": colours.accent,
        "--st-base-radius": "8px",
        "--muted": colours.muted,
    }
