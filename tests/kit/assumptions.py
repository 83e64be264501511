"""Where code asks what an analysis assumes of a model, and where an error was raised that answers it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from traceback import walk_tb

from tests.kit.checkout import ROOT
from transformer.analysis import assumptions

HERE = Path(assumptions.__file__).relative_to(ROOT).as_posix()
Asked = tuple[str, int, str]
"""A file, a line of it, and the question of `assumptions` that is called there."""


def questions_of(package: str) -> Iterator[Asked]:
    """Every place of a package that asks."""
    for path in (ROOT / package).rglob("*.py"):
        file = path.relative_to(ROOT).as_posix()
        if file == HERE or "assumptions" not in (text := path.read_text(encoding="utf-8")):
            continue
        nodes = [*ast.walk(ast.parse(text))]
        modules = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == assumptions.__name__]
        taken = {each.name for node in modules for each in node.names}
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in taken:
                yield file, node.lineno, node.func.id


def asked_by(error: BaseException) -> Asked:
    """The place whose question the error answers."""
    ours = [
        (path.relative_to(ROOT).as_posix(), line, frame.f_code.co_name)
        for frame, line in walk_tb(error.__traceback__)
        if (path := Path(frame.f_code.co_filename)).is_relative_to(ROOT)
    ]
    first = next(i for i, (file, _, _) in enumerate(ours) if file == HERE)
    file, line, _ = ours[first - 1]
    return file, line, ours[first][2]
