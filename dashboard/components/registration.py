"""Makes the components known to Streamlit when they are first mounted, so that importing them needs no server."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from dashboard.server.streamlit_private import register_components

FOLDER = Path(__file__).parent


def renderer(name: str, *, html: str, isolate_styles: bool) -> ComponentRenderer:
    """The callable that mounts component `name`: the script `web/<name>/<name>.js`, and the style beside it, if any."""
    register_components(declared(), FOLDER)
    return _component(f"{declared()['project']['name']}.{name}", name, html, isolate_styles)


@cache
def _component(qualified: str, name: str, html: str, isolate_styles: bool) -> ComponentRenderer:
    css = f"{name}/{name}.css" if (FOLDER / "web" / name / f"{name}.css").exists() else None
    return st.components.v2.component(
        qualified, html=html, css=css, js=f"{name}/{name}.js", isolate_styles=isolate_styles
    )


@cache
def declared() -> dict[str, Any]:
    """What `pyproject.toml` beside this file declares: this distribution, its version and its components."""
    return tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))
