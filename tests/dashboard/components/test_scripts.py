"""All components in one script: each is in it by its name, and its own address leads there."""

from __future__ import annotations

import re
from posixpath import join, normpath
from typing import Any

import pytest

from dashboard.components import scripts
from dashboard.components.documents.bundle import WEB
from dashboard.components.documents.pages import FILES
from tests.kit.rooms.asgi import to_its_end


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
    said: list[Any] = []

    async def streamlit(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])

    async def send(message: Any) -> None:
        said.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": []}
    to_its_end(scripts.Scripts(streamlit, base="/lab")(scope, None, send))  # type: ignore[arg-type]
    assert asked == ([] if ours else [path])
    assert bool(said) == ours
