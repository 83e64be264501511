"""The cache tells arguments apart by all that they hold, and works out behind the page what takes a while."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.models import background, cache
from dashboard.models.cache import cached
from dashboard.models.model import Model
from dashboard.server.streamlit_private import may_draw
from tests.kit.waiting import PATIENCE
from transformer.config import ModelConfig, RunConfig
from transformer.foundation.interruption import go_on

MODEL = Model("reverse", 40, RunConfig(), 0.0)


def test_arrays_are_told_apart_by_type_shape_and_every_cell() -> None:
    """Streamlit alone compares 100,000 cells of an array of 500,000 or more."""

    @cached(8)
    def said(array: np.ndarray) -> tuple[str, tuple[int, ...], object]:
        return array.dtype.name, array.shape, array.ravel()[-1:].tolist()

    large = np.zeros(1_000_000, dtype=np.int64)
    other = large.copy()
    other[-1] = 1
    zeros = [np.zeros(4, np.int64), np.zeros(4), np.zeros((2, 2)), np.zeros((4, 1)), np.zeros(0), np.zeros((0, 3))]
    for each in (*zeros, large, other):
        assert said(each) == (each.dtype.name, each.shape, each.ravel()[-1:].tolist())


def test_the_same_cells_are_looked_up_however_they_lie_in_memory() -> None:
    worked_out = []

    @cached(4)
    def total(array: np.ndarray) -> int:
        worked_out.append(array)
        return int(array.sum())

    table = np.arange(12).reshape(3, 4)
    assert [total(each) for each in (table, table.copy(), np.asfortranarray(table), table[::-1][::-1])] == [66] * 4
    assert len(worked_out) == 1


def test_what_was_remembered_of_an_array_is_not_what_is_written_into_it_later() -> None:
    @cached(4)
    def total(array: np.ndarray) -> int:
        return int(array.sum())

    array = np.ones(3, dtype=np.int64)
    assert total(array) == 3
    array[0] = 5
    assert (total(array), total(np.ones(3, dtype=np.int64))) == (7, 3)


def test_a_model_is_told_apart_by_its_repr_which_holds_every_field_and_is_not_walked_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def names(value: object) -> list[str]:
        fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
        inner = [name for each in fields for name in names(getattr(value, each.name))]
        return [*(f"{each.name}=" for each in fields), *inner]

    assert len(names(MODEL)) > 30
    assert all(name in repr(MODEL) for name in names(MODEL))

    @dataclass(frozen=True)
    class Stranger:
        config: RunConfig

    @cached(8)
    def of(model: object) -> str:
        return repr(model)

    def walked(*_: object, **__: object) -> None:
        raise AssertionError("walked through")

    # Streamlit's way into a dataclass that it has no function for, as the stranger shows.
    monkeypatch.setattr(dataclasses, "asdict", walked)
    with pytest.raises(Exception, match="walked through"):
        of(Stranger(RunConfig()))
    other = RunConfig(model=ModelConfig(norm="post"))
    for each in (
        *(MODEL, replace(MODEL, step=41), replace(MODEL, stamp=1.0), replace(MODEL, config=other), replace(MODEL)),
        *(RunConfig(), other),
    ):
        assert of(each) == repr(each)
    assert of(replace(MODEL)) is of(MODEL)


# --- what takes a while, and is waited for


class Click(BaseException):
    """What Streamlit raises where a page draws, when something else is asked of it."""


class Place:
    """Where a page says that it waits; the reader clicks on something else after so many looks."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.looks = 0
        self.said: list[str] = []

    @contextmanager
    def spinner(self, words: str) -> Iterator[None]:
        self.said.append(words)
        try:
            yield
        finally:
            self.said.append("")

    def get(self, _name: str) -> None:
        """What is read of the session's state: there Streamlit interrupts a page."""
        if self.looks == self.most:
            raise Click
        self.looks += 1


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Place]:
    """A page that waits at once, looks often, and says what it waits for in the place that is handed out."""
    monkeypatch.setattr(background, "AT_ONCE", 0.0)
    monkeypatch.setattr(cache, "LOOK", 0.01)

    def at(most: int) -> Place:
        place = Place(most)
        monkeypatch.setattr(cache, "may_draw", lambda: True)
        monkeypatch.setattr(cache.st, "spinner", place.spinner)
        monkeypatch.setattr(cache.st, "session_state", place)
        return place

    return at


def test_a_page_says_what_it_waits_for_and_a_click_interrupts_it(page: Callable[[int], Place]) -> None:
    """What was begun goes on meanwhile, and is there for whoever asks next."""
    gate, begun = threading.Event(), []

    @cached(4, "Measuring …")
    def squared(number: int) -> int:
        begun.append(number)
        assert gate.wait(PATIENCE)
        return number**2

    place = page(3)
    with pytest.raises(Click):
        squared(7)
    assert (place.said, place.looks) == (["Measuring …", ""], 3)
    gate.set()
    assert (squared(7), squared(7), begun) == (49, 49, [7])


def test_a_page_that_waits_has_the_elements_of_one_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each at its place: a browser makes anew what another rerun draws at another one."""
    monkeypatch.setattr(background, "AT_ONCE", 0.0)
    monkeypatch.setattr(cache, "LOOK", 0.01)
    looks: list[bool] = []
    done = background.Wanted.done
    monkeypatch.setattr(background.Wanted, "done", lambda work, seconds: len(looks) > 2 and done(work, seconds))
    go_on = cache.go_on
    monkeypatch.setattr(cache, "go_on", lambda: (looks.append(True), go_on()))

    @cached(4, "Measuring …")
    def measured() -> str:
        return "measured"

    def script() -> None:
        st.title(measured())
        st.caption("below")

    def elements(app: AppTest) -> list[tuple[int, str]]:
        return [(place, each.type) for place, each in app.main.children.items()]

    monkeypatch.setattr(st, "waiting_script", script, raising=False)
    app = AppTest.from_string("import streamlit as st\nst.waiting_script()").run()
    waited = len(looks)
    first = elements(app)
    assert waited
    assert elements(app.run()) == first
    assert len(looks) == waited, "the second run waits for nothing"


def test_what_no_page_waits_for_is_given_up_and_begun_anew_when_asked_for_again(
    page: Callable[[int], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "UNWANTED", math.inf)
    gate, over, begun = threading.Event(), threading.Event(), []

    @cached(4, "Measuring …")
    def piece_by_piece() -> str:
        begun.append(1)
        try:
            while not gate.wait(0.01):
                go_on()
        finally:
            over.set()
        return "all pieces"

    page(1)
    with pytest.raises(Click):
        piece_by_piece()
    monkeypatch.setattr(background, "UNWANTED", 0.0)
    assert over.wait(PATIENCE)
    monkeypatch.setattr(background, "UNWANTED", math.inf)
    gate.set()
    assert (piece_by_piece(), len(begun)) == ("all pieces", 2)


def test_a_failure_is_told_and_not_remembered() -> None:
    answers = iter([ValueError("the disk is full"), "better"])

    @cached(4, "Measuring …")
    def once_more() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(ValueError, match="the disk is full"):
        once_more()
    assert [once_more(), once_more()] == ["better", "better"]


def test_what_waits_behind_a_page_draws_nothing(page: Callable[[int], Place], monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the outermost of two that are nested says that it is waited for."""

    @cached(4, "Inner …")
    def inner() -> str:
        return f"in a thread of {'the page' if may_draw() else 'its own'}"

    @cached(4, "Outer …")
    def outer() -> str:
        return inner()

    monkeypatch.setattr(cache.st, "spinner", lambda words: pytest.fail("drawn behind the page"))
    assert outer() == "in a thread of its own"
