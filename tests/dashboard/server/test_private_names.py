"""The dashboard goes on without each private name of Streamlit: what needs one is left out, and one line says so."""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests
from streamlit.runtime.state import SafeSessionState, SessionState

import dashboard
from dashboard.server import http, streamlit_private
from dashboard.server.private_names import Part, exists
from tests.kit.pages import ROOT, components, open_page
from tests.kit.streamlit_insides import quick_pages
from tests.kit.streamlit_insides.other_streamlit import RENAMED, environment

PUBLIC = {"streamlit", "streamlit.testing.v1", "streamlit.typing", "streamlit.components.v2.types"}
"""The modules of Streamlit that its reference names."""


def insides(path: Path) -> set[str]:
    """What a module imports of Streamlit that its reference does not name, as "module:name"."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r"(from|import) streamlit(?! as st\n)", text):
        return set()
    tree = ast.parse(text)
    for_types = {
        id(each)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for each in node.body
    }
    found = set()
    for node in ast.walk(tree):
        names = [(each.name, "") for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level and id(node) not in for_types:
            below = node.module == "streamlit"  # `from streamlit import config` is a module as well
            names = [(f"streamlit.{each.name}" if below else node.module, each.name) for each in node.names]
        found |= {f"{module}:{name}" for module, name in names if module.split(".")[0] == "streamlit"}
    return {each for each in found if each.partition(":")[0] not in PUBLIC}


def test_every_inside_is_imported_in_one_module_which_asks_for_it_first() -> None:
    found = {path: insides(path) for path in sorted(Path(dashboard.__file__).parent.rglob("*.py"))}
    assert {path.name for path, names in found.items() if names} == {"streamlit_private.py"}
    path = Path(streamlit_private.__file__)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_once = [node for node in tree.body if isinstance(node, ast.ImportFrom) and "streamlit." in (node.module or "")]
    assert not at_once, "where it is gone the server would end"
    asked = {need.partition("(")[0] for _, need in NEEDS}
    asked |= {f"{need.partition(':')[0]}:{need.partition(':')[2].partition('.')[0]}" for need in asked}
    assert found[path] <= asked
    private = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr[0] == "_" and getattr(node.value, "id", "") != "self"
    }
    assert private - {"__file__", "__getattribute__", "__module__"} - {"now"} <= {
        need.rpartition(".")[2] for need in asked
    }


NEEDS = [(part, need) for part in streamlit_private.PARTS for need in part.needs]


def taken_away(need: str) -> Iterator[str]:
    """What a need is called where Streamlit has renamed what it names, or where that is in, or has changed it."""
    place, _, name = need.partition(":")
    name, bracket, parameters = name.partition("(")
    yield f"{place}_renamed:{name}"
    yield f"{place}:{name}_renamed"
    if "." in name:
        yield f"{place}:{name.replace('.', '_renamed.')}"
    if bracket:
        yield f"{place}:{name}(another, {parameters}"
        yield f"{place}:{name}(another)"


@pytest.mark.parametrize(("part", "need"), NEEDS, ids=[f"{part.__name__}, {need}" for part, need in NEEDS])
def test_a_part_of_which_one_need_is_gone_is_left_out_with_one_line(
    part: Part[..., Any], need: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert exists(need)
    for gone in taken_away(need):
        caplog.clear()
        needs = [gone if each == need else each for each in part.needs]
        left_out = dataclasses.replace(part, needs=needs, instead=lambda *_: "in its place")
        assert left_out("anything") == left_out("again") == "in its place"
        (line,) = caplog.messages
        name = gone.partition(":")[2].strip()
        assert line == f"Streamlit {st.__version__} has no {name}, so {part.without}."


def test_what_the_tests_lean_on_is_there() -> None:
    assert quick_pages.scan_packages_once.is_there()
    assert quick_pages.compile_scripts_once.is_there()


@pytest.mark.parametrize("mending", streamlit_private.MENDINGS, ids=lambda part: part.__name__)
def test_a_mending_that_is_left_out_leaves_streamlit_as_it_is(
    mending: Part[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = (SafeSessionState, SessionState, ScriptRunner, ScriptRequests, AppSession, ForwardMsgQueue)
    monkeypatch.setattr(mending, "_there", False)
    before = [dict(vars(owner)) for owner in owners]
    mending()
    assert [dict(vars(owner)) for owner in owners] == before


def test_without_a_command_line_to_call_the_server_becomes_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    become: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(streamlit_private.serve, "_there", False)
    monkeypatch.setattr(os, "execv", lambda *given: become.append(given))
    streamlit_private.serve(Path("app.py"), ["--server.port", "8600"])
    assert become == [(sys.executable, [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", "8600"])]


@pytest.mark.parametrize("part", ["served_page", "connecting_script"])
def test_without_streamlits_page_it_is_served_as_it_is(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = streamlit_private.served_page()
    monkeypatch.setattr(getattr(streamlit_private, part), "_there", False)
    http.connecting_page.cache_clear()
    try:
        assert http.connecting_page() == ("" if part == "served_page" else page)
        assert len(http.inline_script_hashes()) == (0 if part == "served_page" else 1)
    finally:
        http.connecting_page.cache_clear()


PAGE = "heads"


def in_another_streamlit(names: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """What a process says in which Streamlit has other names: which parts are there, what is drawn; and its log."""
    code = f"""
import json
from dashboard.server import streamlit_private
streamlit_private.mend()
from dashboard.view import session
from tests.kit.pages import components, open_page
session.BEHIND = 0.0
app = open_page({PAGE!r}).run()  # once more, as a click does
drawn = [components(app), *(each.message for each in app.exception)]
left_out = [part.__name__ for part in streamlit_private.PARTS if not part.is_there()]
print(json.dumps({{"left out": left_out, "drawn": drawn}}))
"""
    variables = os.environ | environment(names)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=variables, cwd=ROOT)
    assert not ended.returncode, ended.stderr
    return json.loads(ended.stdout), [line for line in ended.stderr.splitlines() if line.startswith("Streamlit ")]


FOURTHS = [pytest.param([*RENAMED][part::4], marks=pytest.mark.nightly) for part in range(4)]


@pytest.mark.parametrize("parts", [[*RENAMED], *FOURTHS], ids=["all", *map(str, range(4))])
def test_a_page_is_drawn_where_streamlit_has_renamed_what_a_part_needs(parts: list[str]) -> None:
    told, lines = in_another_streamlit({name for part in parts for name in RENAMED[part]})
    assert set(parts) <= set(told["left out"])
    assert len(lines) == len(told["left out"]), "one line each"
    for name in told["left out"]:
        (line,) = [line for line in lines if getattr(streamlit_private, name).without in line]
        assert any(re.search(rf"\b{each}\b", line) for each in RENAMED[name])
    assert told["drawn"] == [components(open_page(PAGE))]
