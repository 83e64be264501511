"""A small run that has ended, for the tests of a folder of runs and of packed runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.kit.runs import tiny
from transformer.training.recording import develop, record
from transformer.training.runs import Run


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small run that has ended, with everything that a run can have."""
    run = Run.create(tmp_path_factory.mktemp("made") / "small", tiny())
    for _ in record(run):
        pass
    assert develop(run)
    return run


@pytest.fixture
def run(trained: Run, tmp_path: Path) -> Run:
    return Run(Path(shutil.copytree(trained.folder, tmp_path / "small")))
