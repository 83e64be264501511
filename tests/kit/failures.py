"""Writes down what fails while tests run, for .ci/report.py: a file for each run of pytest, in the folder FAILURES."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

HOW_IT_IS_COMPUTED = ("ATEN_", "DNNL_", "MKL_", "NPY_", "OMP_", "ONEDNN_", "OPENBLAS_", "TORCH_")
"""How the variables begin with which a run of the tests may differ from another."""


def pytest_configure(config: pytest.Config) -> None:
    """Only in the process that hears of all tests: workers report to it, also that one of them crashed."""
    if (folder := os.environ.get("FAILURES")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(Path(folder)))


class Failures:
    """Each line is a JSON object, written at once: how the run begins, a test that fails, how the run ends."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"{time.time_ns()}.jsonl"
        variables = {name: value for name, value in os.environ.items() if name.startswith(HOW_IT_IS_COMPUTED)}
        self._write(command=[Path(sys.argv[0]).name, *sys.argv[1:]], variables=variables)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._write(test=report.nodeid, when=report.when, reason=reason(report.longrepr))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(test=report.nodeid, when="collect", reason=reason(report.longrepr))

    def pytest_internalerror(self, excrepr: Any) -> None:
        self._write(test="pytest", when="internal error", reason=reason(excrepr))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        parts = reporter.build_summary_stats_line()[0] if reporter else []
        self._write(status=int(exitstatus), closing=", ".join(text for text, _ in parts))

    def _write(self, **line: Any) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def reason(longrepr: Any) -> str:
    """The first line of why something failed."""
    crash = getattr(longrepr, "reprcrash", None)
    lines = [line for line in (crash.message if crash else str(longrepr)).splitlines() if line.strip()]
    marked = [line[1:] for line in lines if line.startswith("E ")]
    return [*marked, *lines, "no reason was given"][0].strip()
