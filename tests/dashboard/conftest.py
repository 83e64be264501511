"""What holds for every page that is opened without a browser."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _each_click_counts(monkeypatch: pytest.MonkeyPatch):
    """No browser, so no click is reported twice, and a second one may follow sooner than any hand could click."""
    monkeypatch.setattr("dashboard.view.clicks.ECHO", 0.0)
