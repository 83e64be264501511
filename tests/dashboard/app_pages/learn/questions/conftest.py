"""What the tests of the five questions share: small sizes, and trainings that wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from dashboard.app_pages.learn.questions import recurrence, residuals
from dashboard.models import background, no_positions
from tests.kit.waiting import PATIENCE


@pytest.fixture
def busy() -> Iterator[threading.Event]:
    """Another training goes on until this is set."""
    over = threading.Event()
    background.TRAININGS.submit(over.wait, PATIENCE)
    yield over
    over.set()


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two lengths to time, a few steps to train, and no race is kept for the next test."""
    monkeypatch.setattr(no_positions, "STEPS", 30)
    monkeypatch.setattr(recurrence, "LENGTHS", (4, 8))
    monkeypatch.setattr(residuals, "RATES", {"0.005": 6, "0.001": 4})
    yield
    residuals.race.clear()  # type: ignore[attr-defined]
    recurrence.timed.clear()  # type: ignore[attr-defined]
