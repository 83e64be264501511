"""What goes on behind a page is drawn again and again until it is over; then it is acted on, and all is drawn anew."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from dashboard.models import background
from dashboard.parts import waiting


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What happens, in order. The timer looks three times."""
    told: list[Any] = []

    def fragment(look: Callable[..., None], run_every: float | None) -> Callable[..., None]:
        def looks(*asked: object) -> None:
            told.append(run_every)
            for _ in range(3):
                look(*asked)

        return looks

    monkeypatch.setattr(waiting.st, "fragment", fragment)
    monkeypatch.setattr(waiting.st, "caption", told.append)
    monkeypatch.setattr(waiting.clicks, "again", lambda: told.append("again"))
    return told


def test_it_is_drawn_until_it_is_over_and_then_all_is(told: list[Any]) -> None:
    over = iter([False, True])
    waiting.until(lambda: next(over), lambda: told.append("draw"), then=lambda: told.append("then"), every=0.2)
    assert told == [0.2, "draw", "draw", "then", "again", "draw"]  # a rerun ends the last look before it draws


def test_what_is_over_at_once_is_painted_first(told: list[Any]) -> None:
    waiting.until(lambda: True, lambda: told.append("draw"), every=None)
    assert told[:3] == [None, "draw", "again"]


def test_words_stand_for_what_is_not_ready(told: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "AT_ONCE", 0.0)
    future: Future[str] = Future()
    assert waiting.ready(future, "Measuring …") is None
    assert told == [waiting.AGAIN, *[":material/hourglass_top: Measuring …"] * 3]
    future.set_result("found")
    assert waiting.ready(future, "Measuring …") == "found"
    assert len(told) == 4
