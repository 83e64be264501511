"""The block at the end of .ci/run: whatever fails, however it fails, stands there with its reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.kit.checkout import ROOT, script
from tests.kit.waiting import PATIENCE

REPORT = script(".ci/report.py")
PLUGINS = ("-p", "tests.kit.runner.failures", "-p", "tests.kit.runner.workers")
WRONG = """
import os, pathlib, pytest

HERE = pathlib.Path(__file__).parent

@pytest.fixture
def broken():
    raise OSError("no disk")

@pytest.fixture
def left():
    yield
    raise RuntimeError("left behind")

def test_right(): pass
def test_wrong(): assert 1 == 2, "one is not two"
@pytest.mark.parametrize("case", ["a b[c]"])
def test_of_a_case(case): raise ValueError("first\\nsecond")
def test_setup(broken): pass
def test_teardown(left): pass
def test_crash(): os._exit(7)
def test_once():
    there = HERE / "there"
    assert there.exists() or there.touch()
def test_last(): pass
"""


def run(folder: Path, *arguments: str, **variables: str) -> int:
    command = [sys.executable, "-m", "pytest", "-q", *PLUGINS, "-c", os.devnull, *arguments]
    environment = os.environ | {"FAILURES": str(folder)} | variables
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE).returncode


def test_what_failed_stands_in_one_block_with_its_reason_and_what_comes_of_it_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # of those that are installed most take long to import
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p xdist")
    (tmp_path / "test_wrong.py").write_text(WRONG)
    (tmp_path / "test_cut.py").write_text("import nothing\n")
    found = tmp_path / "found"
    assert run(found, "-n1", "--rootdir", str(tmp_path), str(tmp_path / "test_wrong.py")) == 1
    plain = {"ATEN_CPU_CAPABILITY": "plain"}
    assert run(found, "-n0", "--rootdir", str(tmp_path), str(tmp_path / "test_cut.py"), **plain) == 2
    asked: list[str] = []

    def again(test: str, variables: dict[str, str], seconds: float) -> str:
        asked.append(test)
        return REPORT.alone(test, variables, PATIENCE) if test.endswith(("once", "wrong")) else "not asked"

    lint, *lines, first, second = REPORT.report(found, ["make lint"], again)
    assert lint == "make lint: see above"
    assert lines == [
        "test_wrong.py::test_wrong: AssertionError: one is not two [alone it fails, too]",
        "test_wrong.py::test_of_a_case[a b[c]]: ValueError: first [not asked]",
        "test_wrong.py::test_setup (setup): OSError: no disk [not asked]",
        "test_wrong.py::test_teardown (teardown): RuntimeError: left behind [not asked]",
        "test_wrong.py::test_crash (???): worker 'gw0' crashed while running 'test_wrong.py::test_crash' [not asked]",
        "test_wrong.py::test_once: AssertionError: assert (False or None) [alone it passes]",
        "ATEN_CPU_CAPABILITY=plain test_cut.py (collect): ModuleNotFoundError: No module named 'nothing' [not asked]",
    ]
    assert len(asked) == len(lines)
    assert first.startswith("__main__.py -q ")
    assert first.endswith(": 4 failed, 3 passed, 2 errors (exit code 1)")
    assert second.startswith("ATEN_CPU_CAPABILITY=plain __main__.py -q ")
    assert second.endswith(": 1 error (exit code 2)")


def test_of_many_few_are_run_again(tmp_path):
    begun, lost = {"command": ["pytest"], "variables": {}}, {"when": "call", "reason": "lost" * 1000}
    tests = [{"test": f"test_{number}", **lost} for number in range(300)]
    (tmp_path / "1").write_text("\n".join(map(json.dumps, [begun, *tests])))
    lines = REPORT.report(tmp_path, [], lambda *_: "again")
    assert [line.startswith(f"test_{number}: lost") for number, line in enumerate(lines[:-1])] == [True] * 300
    assert sum(line.endswith("[again]") for line in lines) == REPORT.MOST
    assert max(map(len, lines)) < 2 * REPORT.LONGEST
    assert lines[-1] == "pytest: it was cut off"


def test_where_nothing_failed_nothing_is_said(tmp_path):
    assert REPORT.report(tmp_path, []) == ["no test was run"]
    lines = {"command": ["pytest"], "variables": {}}, {"status": 0, "closing": "1 passed"}
    (tmp_path / "1").write_text("\n".join(map(json.dumps, lines)))
    assert REPORT.report(tmp_path, []) == []
