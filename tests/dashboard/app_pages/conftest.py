"""What the tests of several pages share: a model of one's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.models import untrained
from transformer import checkpoints
from transformer.config import RunConfig, TaskConfig
from transformer.model import Transformer
from transformer.training.runs import Run

Made = Callable[..., tuple[Transformer, RunConfig]]


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Makes an untrained model of a task, called "one" unless it is said otherwise; the shipped ones are gone."""
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)

    def made(task: dict[str, Any], name: str = "one", **model: Any) -> tuple[Transformer, RunConfig]:
        untrained(tmp_path / name, TaskConfig(**task), **model)
        return checkpoints.load(Run(tmp_path / name).snapshot())

    return made
