"""Makes the components known to Streamlit when they are first mounted, so that importing them needs no server."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from dashboard.components.documents.bundle import style
from dashboard.server.streamlit_private import register_components

FOLDER = Path(__file__).parent
SCRIPTS = "reader/components.js"
"""The one script of all components, below the application's root."""


def renderer(name: str, *, html: str, isolate_styles: bool) -> ComponentRenderer:
    """The callable that mounts component `name`: the script `web/<name>/<name>.js`, and the style beside it, if any."""
    known = register_components(declared(), FOLDER)
    return (_of_files if known else _of_texts)(name, html, isolate_styles)


def nothing() -> None:
    """The answer to what nobody asked to hear."""


@cache
def _of_files(name: str, html: str, isolate_styles: bool) -> ComponentRenderer:
    qualified = f"{declared()['project']['name']}.{name}"
    css = f"{name}/{name}.css" if _has_style(name) else None
    return st.components.v2.component(
        qualified, html=html, css=css, js=f"{name}/{name}.js", isolate_styles=isolate_styles
    )


@cache
def _of_texts(name: str, html: str, isolate_styles: bool) -> ComponentRenderer:
    """Where Streamlit does not know the folder, it is given the style itself, and a text that finds the script."""
    css = style(f"{name}/{name}.css") if _has_style(name) else None
    js = f"const all = await import(new URL('{SCRIPTS}', document.baseURI));\nexport default all.{name};\n"
    return st.components.v2.component(f"attention_lab_{name}", html=html, css=css, js=js, isolate_styles=isolate_styles)


def _has_style(name: str) -> bool:
    return (FOLDER / "web" / name / f"{name}.css").exists()


@cache
def declared() -> dict[str, Any]:
    """What `pyproject.toml` beside this file declares: this distribution, its version and its components."""
    return tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))
