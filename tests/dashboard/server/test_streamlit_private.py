"""The private parts of Streamlit that the dashboard leans on are there and do what it leans on, each by its name."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.testing.v1 import AppTest

import dashboard
from dashboard.server import streamlit_private

PUBLIC = {"streamlit", "streamlit.testing.v1", "streamlit.typing", "streamlit.components.v2.types"}
"""The modules of Streamlit that its reference names."""


def test_the_script_run_context_says_which_fragments_were_asked_for() -> None:
    assert "fragment_ids_this_run" in {each.name for each in dataclasses.fields(ScriptRunContext)}
    assert streamlit_private.fragments_asked() is None  # no run, no request

    def script() -> None:
        import streamlit as st

        from dashboard.server.streamlit_private import fragments_asked

        st.session_state.asked = fragments_asked()

    app = AppTest.from_function(script).run()
    assert not app.exception
    assert app.session_state.asked is None  # everything was asked for


def test_the_thread_state_has_a_fragment_id() -> None:
    def script() -> None:
        import streamlit as st

        from dashboard.server.streamlit_private import fragment_here

        def clicked(place: str) -> None:
            st.session_state[f"callback {place}"] = fragment_here()

        @st.fragment
        def part() -> None:
            st.session_state.inside = fragment_here()
            st.button("Inside", on_click=clicked, args=("inside",))

        st.session_state.outside = fragment_here()
        st.button("Outside", on_click=clicked, args=("outside",))
        part()

    app = AppTest.from_function(script).run()
    for button in app.button:
        button.click()
    app.run()
    assert not app.exception
    assert app.session_state.inside
    assert app.session_state["callback inside"] == app.session_state.inside
    assert app.session_state.outside is None
    assert app.session_state["callback outside"] is None


def test_a_page_runs_once_and_each_copy_of_it_once_more(tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text("import streamlit as st\nst.write('drawn')\n", encoding="utf-8")
    (tmp_path / "main.py").write_text(
        "import streamlit as st\n"
        "from dashboard.server.streamlit_private import run_again\n"
        "page = st.navigation([st.Page('page.py')])\n"
        "run_again(page)\n"
        "run_again(page)\n"
        "page.run()\n"
        "page.run()\n",
        encoding="utf-8",
    )
    app = AppTest.from_file(str(tmp_path / "main.py")).run()
    assert [each.value for each in app.markdown] == ["drawn"] * 3
    assert app.exception  # the page itself had its turn


def test_the_component_manager_takes_the_manifest_of_a_checkout(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    declared = {
        "project": {"name": "some-lab", "version": "1"},
        "tool": {"streamlit": {"component": {"components": [{"name": "one", "asset_dir": "web"}]}}},
    }
    manager = BidiComponentManager()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamlit_private, "get_bidi_component_manager", lambda: manager)
        assert manager.get_component_asset_root("some-lab.one") is None
        streamlit_private.register_components(declared, tmp_path)
        assert manager.get_component_asset_root("some-lab.one") == tmp_path.resolve() / "web"


def test_every_runtime_asks_the_manifest_scanner_for_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(manifest_scanner, "scan_component_manifests", lambda: asked.append(1) or [])
    streamlit_private.scan_packages_once()
    for _ in range(2):
        BidiComponentManager().discover_and_register_components(start_file_watching=False)
    assert len(asked) == 1


def test_the_served_page_has_one_script_written_into_it() -> None:
    assert len(re.findall(r"<script>(.*?)</script>", streamlit_private.served_page(), flags=re.DOTALL)) == 1


def test_a_container_is_a_delta_generator() -> None:
    assert streamlit_private.DeltaGenerator is type(st._main)


def test_no_other_module_imports_an_inside_of_streamlit() -> None:
    found = []
    for path in sorted(Path(dashboard.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                below = node.module == "streamlit"  # `from streamlit import config` is a module as well
                names = [f"{node.module}.{each.name}" for each in node.names] if below else [node.module]
            found += [
                f"{path.name}: {name}" for name in names if name.split(".")[0] == "streamlit" and name not in PUBLIC
            ]
    assert {line.partition(":")[0] for line in found} == {"streamlit_private.py"}, found
