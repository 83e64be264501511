"""What goes on behind a page is drawn again and again until it is over; then it is acted on, and all is drawn anew."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from dashboard.models import background
from dashboard.parts import redrawing, waiting


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What happens, in order. It is drawn three times; the browser is given a version and seconds, if any.

    The version is None where it is to ask by the clock.
    """
    told: list[Any] = []

    def fragment(draw: Callable[..., None]) -> Callable[..., None]:
        def draws(*asked: object) -> None:
            for _ in range(3):
                draw(*asked)

        return draws

    monkeypatch.setattr(redrawing.st, "fragment", fragment)

    def ask(number: int, token: str | None, version: int, every: float, awaits: bool) -> None:
        assert awaits  # a hand-out waits for whatever has an end
        told.append((version if token else None, every))

    monkeypatch.setattr(redrawing, "ask_for_news", ask)
    monkeypatch.setattr(waiting.st, "caption", told.append)
    monkeypatch.setattr(waiting.clicks, "again", lambda: told.append("again"))
    return told


def test_it_is_drawn_until_it_is_over_and_then_all_is(told: list[Any]) -> None:
    over = iter([False, False, True])
    waiting.until(lambda: next(over), lambda: told.append("draw"), then=lambda: told.append("then"), every=0.2)
    drawn = ["draw", (None, 0.2)]
    assert told == [*drawn, *drawn, "then", "again", *drawn]  # a rerun ends the last look before it draws


@pytest.mark.parametrize("news", [None, lambda: 1])
def test_what_is_over_at_once_is_painted_and_then_asked_for_again(told: list[Any], news: Callable[[], int] | None):
    waiting.until(lambda: True, lambda: told.append("draw"), news=news, every=0.2)
    assert told[:3] == ["draw", (None, 0.2), "again"]  # nobody has to tell what is known


def test_what_comes_while_it_is_drawn_is_newer_than_what_is_drawn(told: list[Any]) -> None:
    there: list[int] = []
    waiting.until(lambda: False, lambda: there.append(0), news=lambda: len(there), every=0.2)
    assert told == [(version, 0.2) for version in (1, 2, 3)]


def test_what_is_over_at_once_is_painted_first(told: list[Any]) -> None:
    waiting.until(lambda: True, lambda: told.append("draw"), every=None)
    assert told[:3] == ["draw", "again", "draw"]


def test_words_stand_for_what_is_not_ready(told: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "AT_ONCE", 0.0)
    future: Future[str] = Future()
    assert waiting.ready(future, "Measuring …") is None
    assert told == [":material/hourglass_top: Measuring …", (1, waiting.AGAIN)] * 3
    future.set_result("found")
    assert waiting.ready(future, "Measuring …") == "found"
    assert len(told) == 6
