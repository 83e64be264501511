"""Makes the components known to Streamlit when they are first mounted, so that importing them needs no server."""

import tomllib
from functools import cache
from pathlib import Path

import streamlit as st
from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest
from streamlit.components.v2.types import ComponentRenderer

FOLDER = Path(__file__).parent


def renderer(name: str, *, html: str, isolate_styles: bool) -> ComponentRenderer:
    """The callable that mounts component `name`, whose script and style are `web/<name>/<name>.js` and `.css`."""
    ours = manifest()
    # Streamlit's own scan looks for a package named like the distribution, so it finds an installed wheel but not an
    # editable install; and each runtime (every AppTest has one) starts empty.
    manager = get_bidi_component_manager()
    if manager.get_component_asset_root(f"{ours.name}.{name}") is None:
        manager.register_from_manifest(ours, FOLDER)
    return _component(f"{ours.name}.{name}", name, html, isolate_styles)


@cache
def _component(qualified: str, name: str, html: str, isolate_styles: bool) -> ComponentRenderer:
    return st.components.v2.component(
        qualified, html=html, css=f"{name}/{name}.css", js=f"{name}/{name}.js", isolate_styles=isolate_styles
    )


@cache
def manifest() -> ComponentManifest:
    """What `pyproject.toml` beside this file declares: this distribution, its version and its components."""
    declared = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))
    components = declared["tool"]["streamlit"]["component"]["components"]
    return ComponentManifest(
        name=declared["project"]["name"],
        version=declared["project"]["version"],
        components=[ComponentConfig.from_dict(component) for component in components],
    )
