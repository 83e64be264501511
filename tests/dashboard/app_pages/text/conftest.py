"""What the tests of reading and writing share: a small model that has read a small text."""

from __future__ import annotations

import pytest

from tests.kit import texts
from transformer.training.runs import Run


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """It is only looked at, and alone in its folder of runs."""
    return texts.trained(tmp_path_factory.mktemp("runs") / "plays", texts.config())
