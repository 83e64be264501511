"""What makes the tests' pages quick: each has a runtime of its own, which would do again what another has done.

They lean on insides of Streamlit as the dashboard does (dashboard/server/private_names.py), and are left out like them.
"""

from __future__ import annotations

from functools import cache

from dashboard.server.private_names import needs

SCANNER = "streamlit.components.v2.manifest_scanner"
TESTING = "streamlit.testing.v1"


@needs(f"{SCANNER}:scan_component_manifests", without="every AppTest takes 0.2 s longer", instead=lambda: None)
def scan_packages_once() -> None:
    """Let all runtimes of this process share one scan for packages that bring components; the tests have hundreds."""
    from streamlit.components.v2 import manifest_scanner

    manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


@needs(
    "streamlit.runtime.scriptrunner.script_cache:ScriptCache",
    f"{TESTING}.app_test:ScriptCache",
    f"{TESTING}.local_script_runner:ScriptCache",
    without="every run of an AppTest takes 15 ms longer",
    instead=lambda: None,
)
def compile_scripts_once() -> None:
    """Let all runs of the tests share the compiled scripts of pages, as the runs of a server do."""
    from streamlit.runtime.scriptrunner.script_cache import ScriptCache
    from streamlit.testing.v1 import app_test, local_script_runner

    shared = ScriptCache()
    for module in (app_test, local_script_runner):
        module.ScriptCache = lambda: shared  # type: ignore[attr-defined]
