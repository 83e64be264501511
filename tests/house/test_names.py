"""Every name that a file reads is bound in it. Ruff cannot say so: shapes stand in annotations as words."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("transformer", "dashboard", "tests", "benchmarks", "docs", "checkpoints")
GIVEN = {*dir(builtins), "__file__", "__name__", "__doc__", "__path__"}


def unbound(source: str) -> set[str]:
    """The names that a file reads and nothing in it binds: no import, assignment, parameter, definition or pattern."""
    read, bound = set(), set(GIVEN)
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias(name=name, asname=other):
                bound.add(other or name.split(".")[0])
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                bound.add(name)
    return read - bound


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_name_is_bound_in_its_file(folder: str):
    files = sorted((ROOT / folder).rglob("*.py"))
    found = {str(path.relative_to(ROOT)): names for path in files if (names := unbound(path.read_text("utf-8")))}
    assert files
    assert not found


def test_a_name_that_was_left_behind_is_found():
    assert unbound("from a import b as c\ndef f(x):\n    try: return c(x) + gone\n    except E as e: raise e") == {
        "gone",
        "E",
    }


def test_what_is_wrong_or_removed_has_one_mark_everywhere():
    files = [path for kind in ("py", "js") for path in (ROOT / "dashboard").rglob(f"*.{kind}")]
    texts = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in files}
    assert any("✕" in text for text in texts.values())
    assert not [path for path, text in texts.items() if set(text) & set("✗✘✖╳☓")]
