"""Every benchmark runs: its smallest sizes, one turn, in a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOUND = sorted(path for path in (ROOT / "benchmarks").rglob("*.py") if '__name__ == "__main__"' in path.read_text())
PATIENCE = 600
NUMBER, SPREAD = r"\| [\d,]+(\.\d+)? \|", r"\| [\d,.]+ to [\d,.]+ \|"
"""Cells of a table: a number, and the least and the most of several."""


def test_they_are_found():
    assert {path.stem for path in FOUND} >= {
        "explore",
        "figures",
        "generation",
        "language",
        "reruns",
        "throughput",
        "training",
    }


@pytest.mark.nightly
@pytest.mark.parametrize("program", FOUND, ids=lambda path: path.stem)
def test_it_runs(program: Path):
    """And prints a page of numbers. What is not installed here is said in one line, with exit code 2."""
    before = {path: path.read_bytes() for path in (ROOT / "benchmarks").glob("*.md")}
    done = subprocess.run(
        [sys.executable, program, "--quick"], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    if done.returncode == 2:
        (reason,) = done.stderr.splitlines()
        pytest.skip(reason)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    title, _, content = done.stdout.partition("\n")
    assert re.fullmatch("# .+", title)
    assert not re.search(r"\b(nan|inf|None)\b", content)
    tables = re.findall(r"^(\|.*\|)\n\|-.*\|\n((?:\|.*\|\n)+)", content, re.MULTILINE)
    assert tables
    for head, rows in tables:
        for row in rows.splitlines():
            assert re.search(SPREAD if "least to most" in head else NUMBER, row), row
    assert {path: path.read_bytes() for path in (ROOT / "benchmarks").glob("*.md")} == before


@pytest.mark.nightly
def test_what_is_only_tried_out_is_not_saved():
    program = ROOT / "benchmarks" / "figures.py"
    done = subprocess.run([sys.executable, program, "--quick", "--save"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "not allowed with argument" in done.stderr
