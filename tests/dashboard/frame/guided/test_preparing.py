"""What comes next in a lecture is opened for nobody: one page at a time, each once, and nobody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from dashboard.frame.guided import preparing
from dashboard.frame.guided.preparing import Ahead, want
from dashboard.lectures.shelf import lectures
from dashboard.models import menu
from dashboard.models.model import Model
from dashboard.server import background
from tests.kit.pages import open_page
from tests.kit.waiting import wait_for


class Visits:
    """Pages that are opened step by step: `go_on` is asked once for each `element`."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[tuple[str, bool]] = []
        self.element = threading.Semaphore(0)
        self.most = self.going = 0

    def __call__(self, address: str, query: str, go_on: Callable[[], bool]) -> bool:
        self.going += 1
        self.most = max(self.most, self.going)
        self.begun.append(address)
        self.element.acquire()
        whole = go_on()
        self.ended.append((address, whole))
        self.going -= 1
        return whole


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Iterator[Visits]:
    monkeypatch.setattr(preparing, "_wanted", type(preparing._wanted)())
    monkeypatch.setattr(preparing, "_opened", type(preparing._opened)())
    made = Visits()
    yield made
    preparing._wanted.clear()
    made.element.release(100)
    wait_for("nothing is opened any more", lambda: made.going, lambda going: not going)


@pytest.fixture(scope="module")
def model() -> Model:
    choice = menu.menu()["reverse"]
    return Model.of(choice, choice.snapshots[-1])


def pages(model: Model, *addresses: str) -> tuple[Ahead, ...]:
    return tuple(Ahead(each, "", model) for each in addresses)


def test_pages_are_opened_one_at_a_time_each_once_for_all_sessions(visits: Visits, model: Model) -> None:
    want("one", pages(model, "a", "b"), visits)
    want("other", pages(model, "a", "c"), visits)
    visits.element.release(3)
    wait_for("all are opened", lambda: [*visits.ended], lambda ended: len(ended) == 3)
    assert sorted(visits.ended) == [("a", True), ("b", True), ("c", True)]
    assert visits.most == 1
    want("third", pages(model, "c", "d"), visits)
    visits.element.release()
    wait_for("the new one is opened", lambda: visits.begun[3:], lambda begun: begun == ["d"])


@pytest.mark.parametrize("comes", [(), ("b",)])
def test_who_leaves_or_goes_on_ends_what_is_opened_and_it_is_opened_again_when_it_is_wanted(
    visits: Visits, model: Model, comes: tuple[str, ...]
) -> None:
    want("one", pages(model, "a"), visits)
    wait_for("it is begun", lambda: visits.begun, bool)
    want("one", pages(model, *comes), visits)
    visits.element.release()
    wait_for("it is ended", lambda: [*visits.ended], lambda ended: ended == [("a", False)])
    visits.element.release(2)
    want("one", pages(model, "a"), visits)
    wait_for("it is opened", lambda: [*visits.ended], lambda ended: ("a", True) in ended)


def test_it_waits_while_a_page_is_drawn_for_somebody(
    visits: Visits, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = threading.Semaphore(0)

    class Clock:
        monotonic = staticmethod(preparing.time.monotonic)

        @staticmethod
        def sleep(_: float) -> None:
            waited.release()

    monkeypatch.setattr(preparing, "time", Clock)
    with background.drawing():
        want("one", pages(model, "a"), visits)
        visits.element.release()
        for _ in range(3):
            waited.acquire()
        assert visits.ended == []
    wait_for("it went on", lambda: [*visits.ended], lambda ended: ended == [("a", True)])
    assert not background.busy


def test_a_step_wants_the_two_after_it_and_none_where_the_lecture_is_explored_or_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[str, ...]] = []
    monkeypatch.setattr(preparing, "is_served", lambda: True)
    monkeypatch.setattr(preparing, "want", lambda key, pages, visit: told.append(tuple(each.query for each in pages)))
    steps = lectures().files["masks"].steps
    open_page(steps[1].page, **steps[1].view.to_query(), lecture="masks", lecture_step="2")
    assert len(told[-1]) == 2
    assert [f"lecture_step={number}" in query for number, query in zip((3, 4), told[-1], strict=True)] == [True, True]
    open_page(steps[1].page, **steps[1].view.to_query(), lecture="masks", lecture_step="2", exploring="1")
    open_page("masks", run="reverse")
    last = steps[-1]
    open_page(last.page, **last.view.to_query(), lecture="masks", lecture_step=str(len(steps)))
    assert told[-3:] == [(), (), ()]
