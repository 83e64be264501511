"""Prints in one block what failed, from the files of tests/kit/runner/failures.py: `.ci/report.py FOLDER [PART]…`.

Each failed test stands there with the first line of its reason, and with whether it fails by itself, too: it is run
once more alone, for the log only. A PART is a step without tests that failed, such as lint. The exit code is 1 if
anything failed, or if a run of the tests has no end, or if there was none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MOST, SECONDS = 20, 600.0
"""How many failed tests are run again at most, and how long that may take in all."""
LONGEST = 300
"""Letters of a reason."""
Again = Callable[[str, dict[str, str], float], str]


def alone(test: str, variables: dict[str, str], seconds: float) -> str:
    """What comes of a test that is run by itself."""
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", test]
    environment = {name: value for name, value in os.environ.items() if name != "FAILURES"} | variables
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"alone it did not end within {seconds:.0f} s"
    return {0: "alone it passes", 1: "alone it fails, too"}.get(
        ended.returncode, f"alone it cannot be run: exit code {ended.returncode}"
    )


def report(folder: Path, parts: list[str], again: Again = alone) -> list[str]:
    """The lines of the block; none when nothing failed."""
    runs = [[json.loads(line) for line in path.read_text("utf-8").splitlines()] for path in sorted(folder.glob("*"))]
    lines = [f"{part}: see above" for part in parts]
    failed = [(run[0], each) for run in runs for each in first_of_each(run)]
    end = time.monotonic() + SECONDS
    for number, (run, each) in enumerate(failed):
        left = end - time.monotonic()
        can_run = each["when"] != "internal error" and number < MOST and left > 0
        outcome = again(each["test"], run["variables"], left) if can_run else "it was not run again"
        when = "" if each["when"] == "call" else f" ({each['when']})"
        lines.append(f"{set_for(run)}{each['test']}{when}: {each['reason'][:LONGEST]} [{outcome}]")
    lines += [] if runs else ["no test was run"]
    if lines or any(status_of(run) != 0 for run in runs):
        lines += map(closing, runs)
    return lines


def first_of_each(run: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The first failure of each test that failed."""
    firsts: dict[str, dict[str, Any]] = {}
    for line in run:
        if "test" in line:
            firsts.setdefault(line["test"], line)
    yield from firsts.values()


def status_of(run: list[dict[str, Any]]) -> int | None:
    """The exit code of a run of the tests; None when it has no end."""
    return next((line["status"] for line in run if "status" in line), None)


def closing(run: list[dict[str, Any]]) -> str:
    """What the runner said last of a run of the tests."""
    status, said = status_of(run), next((line["closing"] for line in run if "closing" in line), "")
    ended = "it was cut off" if status is None else f"{said or 'no test was run'} (exit code {status})"
    return f"{set_for(run[0])}{' '.join(run[0]['command'])}: {ended}"


def set_for(run: dict[str, Any]) -> str:
    """The variables that were set for this run of the tests, as one writes them before a command."""
    return "".join(f"{name}={value} " for name, value in run["variables"].items() if os.environ.get(name) != value)


if __name__ == "__main__":
    found = report(Path(sys.argv[1]), sys.argv[2:])
    if found:
        print("\n=== What failed ===", *found, sep="\n")
    sys.exit(bool(found))
