"""The whole command line: it calls itself as it was called, and answers bad input with one line."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from cyclopts import App

from dashboard.__main__ import app, main
from tests.kit.checkout import ROOT
from transformer.__main__ import app as library
from transformer.foundation import program as naming
from transformer.foundation.program import program

NAMES = re.compile(r"attention-lab(?= [a-z])(?! [a-z]+/\d)|python -m (?:dashboard|transformer)\b(?!\.)")
"""A command line by its name; but for the formats of files, "attention-lab sweep/1", and modules inside."""


def commands(parent: App, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    """Every command with the words that call it."""
    for name in parent:
        if not name.startswith("-"):
            command, words = parent[name], (*before, name)
            yield from [(words, command)] if command.default_command else commands(command, words)


COMMANDS = dict(commands(app))
LIBRARY = [words for words, _ in commands(library)]
HINTS = (
    *("", "x", "list .", "corpus", "corpus --remove a --file b", "corpus --file b"),
    "train --task text --text shakespeare",
)
"""What is answered with what to type instead, where there is no run and no text."""


# --- what it is called


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("/somewhere/bin/attention-lab", "attention-lab"),
        ("/somewhere/transformer/__main__.py", "python -m transformer"),
        ("/somewhere/dashboard/__main__.py", "python -m dashboard"),
    ],
)
def test_every_command_names_the_program_as_it_was_called(called: str, name: str, tmp_path: Path) -> None:
    """In its help, in its errors, and in what it says to do next: all under one name, and under the others some."""
    package = "transformer" if "transformer" in name else "dashboard"
    words = [list(words) for words in (COMMANDS if name == "attention-lab" else LIBRARY[:3])]
    asked = [
        *([*each, *end] for each in words for end in (["--help"], ["--no-such-option", "3"])),
        *map(str.split, HINTS),
    ]
    code = f"import sys\nsys.argv = [{called!r}]\nfrom {package}.__main__ import main\nfor each in {asked}: main(each)"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "1000", "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    usages = re.findall(rf"^Usage: {name} ([a-z -]+?) (?=\W|[A-Z])", done.stdout, re.MULTILINE)
    assert {*map(" ".join, words)} <= {*usages}
    found = set(NAMES.findall(done.stdout + done.stderr))
    assert found == {name} | ({"python -m dashboard"} if package == "transformer" else set())  # which has the screen
    assert done.stdout.count(f"`{name} ") + done.stderr.count(f"`{name} ") >= 4


def test_where_no_command_was_called_the_name_is_one_that_can_be_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["notebook"])
    for found, name in (("/bin/attention-lab", "attention-lab"), (None, "python -m dashboard")):
        monkeypatch.setattr(naming.shutil, "which", lambda name, path, found=found: found)
        assert program() == name
    monkeypatch.delitem(sys.modules, "dashboard")
    assert program() == "python -m transformer"


def test_no_sentence_names_a_program_by_itself() -> None:
    """Pages, errors and hints ask `program()`; what only a reader of the code sees may name one."""
    found = []
    for path in [*ROOT.glob("transformer/**/*.py"), *ROOT.glob("dashboard/**/*.py")]:
        text = path.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(text))) if NAMES.search(text) and path.name != "program.py" else []
        comments = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        said = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in comments]
        found += [f"{path}:{node.lineno}" for node in said if NAMES.search(str(node.value))]
    assert not found


# --- bad input


NEEDED = {
    "resume": ["reverse"],
    "evaluate": ["reverse"],
    "generate": ["shakespeare"],
    "export": ["reverse"],
    "check": ["mine.py"],
    "hand-out": ["attention"],
    "lecture check": [],
    "exercise check": [],
}
"""What a command has to be given before anything else."""
HOSTILE = {"letters": "a" * 4000, "digits": "9" * 4000, "empty": "", "not UTF-8": "\udcff" * 200}
MAY_BE_LONG = {("generate", "--prompt"), ("check", "--name")}
"""Of these a long one is none the worse."""


def hostile_lines(words: tuple[str, ...], turn: int) -> Iterator[list[str]]:
    """The command lines in which one of a command's arguments is hostile, one after the other, each in another way."""
    needed = NEEDED.get(" ".join(words), [])
    kinds = deque(HOSTILE)
    kinds.rotate(turn)
    for argument in COMMANDS[words].assemble_argument_collection():
        option = next((name for name in argument.names if name.startswith("--")), "")
        kinds.rotate()
        if (words[0], option) in MAY_BE_LONG and kinds[0] in ("letters", "digits"):
            continue
        if argument.index == 0:
            yield [*words, HOSTILE[kinds[0]]]
        elif option:
            yield [*words, *needed, f"{option}={HOSTILE[kinds[0]]}"]


@pytest.mark.daily(2 * len(COMMANDS))
@pytest.mark.parametrize(("words", "turn"), list(product(COMMANDS, range(len(HOSTILE)))))
def test_a_hostile_argument_is_one_line(
    words: tuple[str, ...],
    turn: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On stderr, with exit code 2; of what was typed at most 80 characters are repeated."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def attention(query, key, value, mask): return query\n")
    for line in hostile_lines(words, turn):
        code, (out, err) = main(line), capsys.readouterr()
        case = [each[:40] for each in line]
        assert (code, out, len(err.splitlines())) == (2, "", 1), (case, err[:300])
        assert max(map(len, re.findall(r"a+|9+|\?+|(?:\\udcff)+", err)), default=0) <= 80, (case, err[:300])
        assert len(err) < 500, case
    assert {path.name for path in tmp_path.iterdir()} == {"mine.py"}
