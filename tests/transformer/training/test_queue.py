"""The queue: fair between people, bounded, and one limit for all servers that train in a folder."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.runs import looked_after, reached, tiny
from tests.kit.waiting import wait_for
from transformer.config import RunConfig, TrainingConfig
from transformer.training.queue import pool as pool_module
from transformer.training.queue.places import Places
from transformer.training.queue.pool import Pool, Waiting, Worker, in_turn
from transformer.training.queue.worker import _its_turn as its_turn
from transformer.training.runs import Run, RunError

PEOPLE = st.lists(st.sampled_from("abcd"), max_size=12)


def waiting(people: str | list[str]) -> list[Waiting]:
    return [Waiting(Run(Path(str(place))), who) for place, who in enumerate(people)]


def order(people: str, at_work: dict[str, int]) -> str:
    return "".join(each.who for each in in_turn(waiting(people), at_work))


@pytest.mark.parametrize(
    ("people", "at_work", "expected"),
    [
        ("", {}, ""),
        ("aaab", {}, "abaa"),
        ("aaab", {"a": 1}, "baaa"),
        ("aab", {"b": 2}, "aab"),
        ("aabbc", {}, "abcab"),
        ("ba", {"a": 1, "b": 1}, "ba"),
    ],
)
def test_whoever_has_fewest_is_next(people: str, at_work: dict[str, int], expected: str) -> None:
    assert order(people, at_work) == expected


@given(PEOPLE, st.dictionaries(st.sampled_from("abcd"), st.integers(1, 3)))
def test_everybody_waits_in_turn(people: list[str], at_work: dict[str, int]) -> None:
    """All are in it once, one's own in the order in which they came, and no one is two ahead of who waits as well."""
    before = waiting(people)
    found = in_turn(before, at_work)
    assert sorted(each.run.name for each in found) == sorted(each.run.name for each in before)
    for who in "abcd":
        own = [int(each.run.name) for each in found if each.who == who]
        assert own == sorted(own)
    had = Counter(at_work)
    for place, each in enumerate(found):
        assert all(had[each.who] <= had[later.who] for later in found[place:])
        had[each.who] += 1


def test_so_many_places_and_no_more(tmp_path: Path) -> None:
    one, two, three = (Places(tmp_path, 2) for _ in range(3))
    assert (one.take(), two.take(), three.take()) == (True, True, False)
    assert one.take()  # its own still
    one.give()
    assert three.take()
    assert not one.take()
    for each in (two, three):
        each.give()


def test_a_place_is_free_again_however_its_holder_ends(tmp_path: Path) -> None:
    said = (
        "from pathlib import Path; from transformer.training.queue.places import Places; import time; "
        f"p = Places(Path({str(tmp_path)!r}), 1); print(p.take(), flush=True); time.sleep(1e6)"
    )
    with subprocess.Popen([sys.executable, "-c", said], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        own = Places(tmp_path, 1)
        assert not own.take()
        holder.kill()
        holder.wait()
    assert own.take()
    own.give()


def test_a_folder_that_cannot_be_written_limits_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert Places(tmp_path / "file", 1).take()


def test_who_waits_for_a_place_leaves_alone_what_others_have_trained(tmp_path: Path) -> None:
    taken, wanted = Places(tmp_path, 1), Places(tmp_path, 1)
    assert taken.take()
    run = Run.create(tmp_path / "run", tiny())
    run.set_state("finished", 4, "solved at step 4")
    assert not its_turn(run, wanted)
    assert (run.state.status, run.state.reason) == ("finished", "solved at step 4")
    taken.give()


class Idle(Pool):
    """A pool whose workers never come."""

    def start(self) -> None:
        self._open = True

    def _serve(self) -> None:
        pass


def test_the_queue_is_bounded_and_says_one_s_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "MOST_WAITING", 3)
    pool = Idle(1)
    a1, a2, b1, b2 = (Run.create(tmp_path / name, tiny()) for name in ("a1", "a2", "b1", "b2"))
    for run, who in ((a1, "a"), (a2, "a"), (b1, "b")):
        pool.submit(run, who)
    assert [pool.place(run) for run in (a1, b1, a2, b2)] == [(1, 3), (2, 3), (3, 3), (0, 3)]
    assert (pool.live("a"), pool.live("b"), pool.live("c")) == (2, 1, 0)
    with pytest.raises(RunError, match="3 trainings are waiting already: try again later"):
        pool.submit(b2, "b")
    with pytest.raises(RunError, match="waiting for its turn already"):
        pool.submit(a1, "a")
    assert pool.withdraw(a1)
    assert not pool.withdraw(a1)
    assert a1.state.status == "stopped"
    assert pool.place(b1) == (2, 2)


class At(Worker):
    """A worker without a process."""

    def __init__(self, run: Run | None, who: str, since: float) -> None:
        self.run, self.who, self.since = run, who, since


def test_a_pause_of_the_owner_s_is_never_ended_for_others(tmp_path: Path) -> None:
    pool, runs = Idle(1), [Run.create(tmp_path / name, tiny()) for name in ("owner", "late", "early")]
    for run in runs:
        run.set_state("paused", 1)
    pool.workers = [At(run, who, since) for run, who, since in zip(runs, ("", "a", "b"), (0.0, 2.0, 1.0), strict=True)]
    pool._end_a_pause()
    assert [run.control.stop for run in runs] == [False, False, True]
    pool.workers = pool.workers[:1]
    pool._end_a_pause()
    assert not runs[0].control.stop


def test_a_training_without_a_folder_or_without_a_run_is_stopped_in_silence(tmp_path: Path) -> None:
    At(Run(tmp_path / "gone"), "a", 0.0).stop()
    At(None, "a", 0.0).stop()
    assert not (tmp_path / "gone").exists()


LONG = RunConfig(
    task=tiny().task, model=tiny().model, training=TrainingConfig(max_steps=10**6, solved_at=2, device="cpu")
)


@pytest.mark.nightly
def test_two_servers_on_one_folder_share_one_limit_and_a_pause_makes_room(tmp_path: Path) -> None:
    """Two pools, as two servers have them, with their real processes."""
    first, second = (Run.create(tmp_path / name, LONG) for name in ("first", "second"))
    here, there = Pool(1, tmp_path), Pool(1, tmp_path)
    try:
        here.submit(first, "a")
        reached(first, "running", past=0)
        there.submit(second, "b")
        wait_for("a worker has the second, and waits with it", lambda: there.place(second), lambda place: place[0] == 0)
        looked_after(second)
        assert second.state.status == "queued"
        first.ask(pause_at=0)
        reached(second, "running")
        assert first.state.status == "paused"
        first.ask(pause_at=None)  # no place is free now
        looked_after(first)
        assert (first.state.status, second.state.status) == ("paused", "running")
        second.request_stop()
        reached(first, "running")
        third = Run.create(tmp_path / "third", LONG)
        there.submit(third, "b")
        wait_for("a worker has the third, and waits with it", lambda: there.place(third), lambda place: place[0] == 0)
        third.request_stop()
        reached(third, "stopped")
        assert third.state.reason == "taken out of the queue before its turn"
    finally:
        for run in (first, second):
            run.request_stop()
        wait_for("no process has a run", lambda: [run for run in (first, second) if run.waiting], lambda held: not held)
        here.close()
        there.close()


@pytest.mark.nightly
def test_a_guest_s_training_ends_in_time_and_a_long_pause_gives_its_process_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "SPARE", 1)
    pool = Pool(1, tmp_path)
    runs = [Run.create(tmp_path / f"run-{i}", LONG) for i in range(4)]
    try:
        for run in runs[:2]:
            pool.submit(run, "a")
            reached(run, "running", past=0)
            run.ask(pause_at=0)
            reached(run, "paused")
        pool.submit(runs[2], "b")  # both processes are paused: the first gives way
        reached(runs[2], "running")
        assert runs[0].state.status == "stopped"
        assert runs[0].resumable
        assert runs[1].state.status == "paused"
        monkeypatch.setattr(pool_module, "LONGEST", 0.0)
        reached(runs[2], "stopped")
        pool.submit(runs[3])
        reached(runs[3], past=0)
        with pool._news:
            pool._serve()
        assert not runs[3].control.stop, "the owner's is not ended"
    finally:
        for run in runs:
            run.request_stop()
        wait_for("no process has a run", lambda: [run for run in runs if run.waiting], lambda held: not held)
        pool.close()
