"""What the tests of reading and writing share: a small model that has read a small text."""

from __future__ import annotations

import pytest

from tests.kit import texts
from transformer import checkpoints
from transformer.model import Transformer
from transformer.text.task import Text
from transformer.training.runs import Run


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """It is only looked at, and alone in its folder of runs."""
    return texts.trained(tmp_path_factory.mktemp("runs") / "plays", texts.config())


@pytest.fixture(scope="session")
def model(run: Run) -> Transformer:
    return checkpoints.load(run.snapshot())[0]


@pytest.fixture
def task(run: Run) -> Text:
    found = run.config.build_task()
    assert isinstance(found, Text)
    return found
