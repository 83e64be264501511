"""Which request may speak for a widget: that of its own fragment, or one for everything."""

from __future__ import annotations

import pytest

from dashboard.view import clicks


@pytest.mark.parametrize("heard", [True, False])
def test_what_a_timers_request_says_of_a_menu_is_no_choice(heard: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clicks, "is_asked_for", lambda: heard)
    answers: list[int] = []
    clicks.in_time(answers.append)(1)
    assert answers == ([1] if heard else [])
