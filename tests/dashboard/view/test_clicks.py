"""Which request may speak for a widget: that of its own fragment, or one for everything."""

from __future__ import annotations

from pathlib import Path

import pytest

import dashboard
from dashboard.view import clicks


@pytest.mark.parametrize("heard", [True, False])
def test_what_a_timers_request_says_of_a_menu_is_no_choice(heard: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clicks, "is_asked_for", lambda: heard)
    answers: list[int] = []
    clicks.in_time(answers.append)(1)
    assert answers == ([1] if heard else [])


def test_whatever_draws_everything_anew_says_so() -> None:
    """A rerun may come with an address of before, which is read as one that was typed unless something was touched.

    What a counted press calls has touched what it changed.
    """
    root = Path(dashboard.__file__).parent
    asking = {
        path.relative_to(root).as_posix() for path in root.rglob("*.py") if "st.rerun(" in path.read_text("utf-8")
    }
    assert asking == {"view/clicks.py", "components/presses.py"}
