"""This checkout: where it lies, what git tracks of it, its scripts that are in no package, and its calls."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
from collections.abc import Iterator
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tracked(*places: str) -> list[Path]:
    """The files that git tracks in these places, or in all; without git the test is skipped."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    listed = subprocess.run(["git", "ls-files", "-z", *places], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def script(path: str) -> ModuleType:
    """A script, imported."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def contents(folder: Path, *without: str) -> dict[str, bytes]:
    """Every file below a folder, but for locks and those of these names."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name not in ("lock", *without))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


Call = tuple[str, int, str]
"""A file, a line of it, and the function that is called there."""


def calls(package: str, module: ModuleType) -> Iterator[Call]:
    """Every place of a package that calls what it imports from a module by name."""
    for path in (ROOT / package).rglob("*.py"):
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == module.__name__]
        taken = {each.name for node in imports for each in node.names}
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in taken:
                yield path.relative_to(ROOT).as_posix(), node.lineno, node.func.id


def call_that_raised(error: BaseException, module: ModuleType) -> Call:
    """The call of a module's function that an error comes from."""
    ours = [
        (path.relative_to(ROOT).as_posix(), line, frame.f_code.co_name)
        for frame, line in walk_tb(error.__traceback__)
        if (path := Path(frame.f_code.co_filename)).is_relative_to(ROOT)
    ]
    assert module.__file__
    inside = Path(module.__file__).relative_to(ROOT).as_posix()
    first = next(i for i, (file, _, _) in enumerate(ours) if file == inside)
    file, line, _ = ours[first - 1]
    return file, line, ours[first][2]
