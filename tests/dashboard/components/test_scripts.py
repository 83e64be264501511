"""All components in one script, and what is private in Streamlit's page and in Plotly.js in one script a library."""

from __future__ import annotations

import re
from posixpath import join, normpath
from typing import Any

import pytest

from dashboard.components import scripts
from dashboard.components.documents.bundle import WEB
from dashboard.components.documents.pages import FILES
from tests.kit.rooms import asgi


def test_each_component_is_exported_by_its_name():
    script = scripts.components_script()
    assert tuple(re.findall(r"^export const (\w+) = module_\w+\.default;$", script, re.MULTILINE)) == scripts.names()
    assert not re.search(r"^import\b", script, re.MULTILINE)
    assert {path.parent.name for path in WEB.glob("*/*.js") if path.stem == path.parent.name} == set(scripts.names())


@pytest.mark.parametrize("name", scripts.names())
def test_a_component_s_own_address_leads_to_it(name: str):
    folder = f"attention-lab.{name}/{name}"
    line, kind = scripts.answers()[f"{folder}/{name}.js"]
    found = re.fullmatch(rf"export \{{ {name} as default \}} from '([./\w-]+)';\n", line)
    assert found
    assert kind == "text/javascript"
    assert normpath(join("/lab/_stcore/bidi-components", folder, found[1])) == "/lab/reader/components.js"
    assert "components.js" in FILES
    style = WEB / name / f"{name}.css"
    assert style.exists() == (f"{folder}/{name}.css" in scripts.answers())
    if style.exists():
        assert "@import" not in scripts.answers()[f"{folder}/{name}.css"][0]


@pytest.mark.parametrize(
    ("method", "path", "ours"),
    [
        ("GET", "/lab/_stcore/bidi-components/attention-lab.plot/plot/plot.js", True),
        ("HEAD", "/lab/_stcore/bidi-components/attention-lab.plot/plot/plot.js", False),
        ("GET", "/lab/_stcore/bidi-components/attention-lab.shared/kit/mount.js", False),
        ("GET", "/_stcore/bidi-components/attention-lab.plot/plot/plot.js", False),
        ("GET", "/lab/", False),
    ],
)
def test_all_else_is_left_to_streamlit(method: str, path: str, ours: bool):
    asked: list[str] = []

    async def streamlit(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])

    scope = {"type": "http", "method": method, "path": path}
    said = asgi.messages(scripts.Scripts(streamlit, base="/lab"), scope)
    assert (asked, bool(said)) == ([] if ours else [path], ours)


@pytest.mark.parametrize(
    ("script", "private"),
    [
        ("kit/streamlit_private.js", r"data-test|[\"'`. ]st[A-Z]\w+"),
        ("plot/plotly_private.js", r"\._[a-zA-Z]|calcdata|'\.(?:hoverlayer|main-svg|modebar)'|tick text"),
    ],
)
def test_no_other_script_leans_on_an_inside(script: str, private: str):
    files = sorted(WEB.rglob("*.js"))
    assert len(files) > 40
    found = [path for path in files if re.search(private, path.read_text(encoding="utf-8"))]
    assert [path.relative_to(WEB).as_posix() for path in found] == [script]
