"""Which request may speak for a widget: that of its own fragment, or one for everything."""

from __future__ import annotations

import pytest

from dashboard.view import clicks


@pytest.mark.parametrize(
    ("asked", "stands_in", "heard"),
    [
        (None, None, True),
        (None, "page", True),
        (["page"], "page", True),
        (["timer", "page"], "page", True),
        (["timer"], "page", False),
        (["timer"], None, False),  # the sidebar stands in no fragment
    ],
)
def test_what_a_timers_request_says_of_a_menu_is_no_choice(
    asked: list[str] | None, stands_in: str | None, heard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clicks, "fragments_asked", lambda: asked)
    monkeypatch.setattr(clicks, "fragment_here", lambda: stands_in)
    answers: list[int] = []
    clicks.in_time(answers.append)(1)
    assert answers == ([1] if heard else [])
