"""Work behind a page goes on in lanes: so many pieces at a time, in order, and none waits for another lane."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait

import pytest

from dashboard.models import background
from dashboard.models.background import Lane
from tests.kit.waiting import PATIENCE, wait_for


def test_a_lane_does_so_much_at_a_time_and_the_rest_in_order() -> None:
    lane, gates, begun = Lane(2), [threading.Event() for _ in range(5)], list[int]()

    def work(number: int) -> int:
        begun.append(number)
        gates[number].wait(PATIENCE)
        return number * number

    futures = [lane.submit(work, number) for number in range(5)]
    wait_for("the first two have begun", lambda: sorted(begun), lambda pieces: pieces == [0, 1])
    for over, coming in ((0, 2), (1, 3), (3, 4)):
        gates[over].set()
        wait_for(f"piece {coming} has begun", lambda: list(begun), lambda pieces, last=coming: pieces[-1] == last)
        assert futures[over].result(PATIENCE) == over * over
        assert sum(each.running() for each in futures) == 2
    for gate in gates:
        gate.set()
    assert [each.result(PATIENCE) for each in futures] == [0, 1, 4, 9, 16]
    assert begun[2:] == [2, 3, 4]
    assert lane.submit(work, number=4).result(PATIENCE) == 16  # a lane that was empty begins again


def test_what_waits_can_be_cancelled_and_is_never_begun() -> None:
    lane, gate, begun = Lane(1), threading.Event(), []
    lane.submit(gate.wait, PATIENCE)
    second, third = lane.submit(begun.append, 2), lane.submit(begun.append, 3)
    assert second.cancel()
    gate.set()
    wait([third], PATIENCE)
    assert begun == [3]


def test_no_lane_waits_for_another() -> None:
    gate = threading.Event()
    long = Lane(1).submit(gate.wait, PATIENCE)
    assert Lane(1).submit(lambda: "short").result(PATIENCE) == "short"
    assert not long.done()
    gate.set()


def test_what_breaks_off_is_told_to_whoever_asks_and_stops_no_other() -> None:
    """And of nothing else is a problem told."""

    def broken() -> None:
        raise MemoryError

    lane, going, cancelled = Lane(1), Future(), Future()
    first, second = lane.submit(broken), lane.submit(lambda: 2)
    assert second.result(PATIENCE) == 2
    with pytest.raises(MemoryError):
        background.ready(first)
    cancelled.cancel()
    assert [background.problem(each) for each in (first, None, going, second, cancelled)] == ["MemoryError", *[""] * 4]
    failed: Future[int] = Future()
    failed.set_exception(ValueError("out of ink"))
    assert background.problem(failed) == "out of ink"


def test_what_is_not_there_at_once_is_nothing_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "AT_ONCE", 0.01)
    future: Future[int] = Future()
    assert background.ready(future) is None
    future.set_result(3)
    assert background.ready(future) == 3


def test_the_threads_keep_no_server_from_ending() -> None:
    assert Lane(1).submit(lambda: threading.current_thread().daemon).result(PATIENCE)
