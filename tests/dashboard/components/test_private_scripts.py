"""What is private in Streamlit's page and in Plotly.js stands in one script a library, and in no other."""

from __future__ import annotations

import re

import pytest

from dashboard.components import registration

WEB = registration.FOLDER / "web"


@pytest.mark.parametrize(
    ("script", "private"),
    [
        ("kit/streamlit_private.js", r"data-test|[\"'`. ]st[A-Z]\w+"),
        ("plot/plotly_private.js", r"\._[a-zA-Z]|calcdata|'\.(?:hoverlayer|main-svg|modebar)'|tick text"),
    ],
)
def test_no_other_script_leans_on_an_inside(script: str, private: str) -> None:
    files = sorted(WEB.rglob("*.js"))
    assert len(files) > 40
    found = [path for path in files if re.search(private, path.read_text(encoding="utf-8"))]
    assert [path.relative_to(WEB).as_posix() for path in found] == [script]
