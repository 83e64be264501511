"""Every process that the product starts: where it cannot begin, its words are told, and none is started for ever."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.app_pages.learn.check import running
from dashboard.lectures import hand_out
from dashboard.models.background import Measuring
from tests.kit.checkout import ROOT
from tests.kit.runs import reached, tiny
from tests.kit.waiting import wait_for
from transformer.checking.isolation.limits import Limits
from transformer.checking.isolation.process import IsolationError, Warm
from transformer.foundation.last_words import LINES, LONGEST, LastWords
from transformer.training.devices.found import Device, Devices
from transformer.training.queue import pool as pool_module
from transformer.training.queue import warm_ups
from transformer.training.queue.pool import ENOUGH, Pool, Worker
from transformer.training.runs import Run

BROKEN = """echo "Traceback (most recent call last):
ImportError: libtorch.so is broken
  Advice that says nothing." >&2; exit 1"""
TOLD = "its last words were “ImportError: libtorch.so is broken”"
WARM = r"""printf '\n\002ready\n'; while read folder; do {does}; printf '\n\002done\n'; done"""
"""A training process without PyTorch, that does something with each run."""


@dataclass
class Interpreter:
    """What stands in for Python: a script that the test can mend while it is used."""

    folder: Path

    @property
    def started(self) -> int:
        """How many processes it has been."""
        count = self.folder / "started"
        return len(count.read_text()) if count.exists() else 0

    def does(self, script: str) -> None:
        (self.folder / "next").write_text(script)
        os.replace(self.folder / "next", self.folder / "script")


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Interpreter:
    found = Interpreter(tmp_path / "interpreter")
    found.folder.mkdir()
    path = found.folder / "python"
    path.write_text(f"#!/bin/sh\nprintf x >> {found.folder}/started\n. {found.folder}/script\n")
    path.chmod(0o755)
    found.does(BROKEN)
    monkeypatch.setattr(sys, "executable", str(path))
    monkeypatch.setattr(pool_module, "PAUSE", 0.05)
    return found


@pytest.fixture
def pool(python: Interpreter) -> Iterator[Pool]:
    """One place for trainings by that interpreter."""
    found = Pool(1)
    yield found
    found.close()


def untrained(folder: Path, *names: str) -> list[Run]:
    return [Run.create(folder / name, tiny()) for name in names]


def of_a_training(folder: Path) -> str:
    pool, (run,) = Pool(1), untrained(folder, "run")
    try:
        pool.submit(run)
        reached(run, "failed")
        assert pool.trouble == run.state.reason
        return pool.trouble
    finally:
        pool.close()


def of_a_check(folder: Path) -> str:
    try:
        check = running.Check(running.Asked("", "attention"), guarded=False)
        wait_for("the check is over", lambda: check.over)
        for _ in range(3):
            running.prepare()  # a page that is opened tries no further
        return check.problem
    finally:
        running.close()


def of_code_that_is_checked(folder: Path) -> str:
    with Warm() as warm, pytest.raises(IsolationError) as told, warm.bench(Limits()):
        pass
    return str(told.value)


def of_a_measurement(folder: Path) -> str:
    measuring = Measuring("lengths")
    measuring.start(folder / "found.json")
    wait_for("the measurement has ended", lambda: not measuring.running)
    return measuring.why


def of_a_hand_out(folder: Path) -> str:
    with pytest.raises(ValueError, match="The dashboard did not start") as told, hand_out._server():
        pass
    return str(told.value)


KINDS = (of_a_training, of_a_check, of_code_that_is_checked, of_a_measurement, of_a_hand_out)


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_begin_says_why_and_is_not_started_for_ever(
    kind: Callable[[Path], str], python: Interpreter, tmp_path: Path
) -> None:
    assert TOLD in kind(tmp_path)
    assert python.started <= ENOUGH


def test_no_words_of_a_process_go_nowhere() -> None:
    """Its stderr is read, in each call that starts one."""
    found = {}
    for path in (each for folder in ("transformer", "dashboard") for each in (ROOT / folder).rglob("*.py")):
        text = path.read_text()
        for call in ast.walk(ast.parse(text)) if "subprocess" in text else ():
            if isinstance(call, ast.Call) and ast.unparse(call.func) in ("subprocess.Popen", "subprocess.run"):
                told = {each.arg: ast.unparse(each.value) for each in call.keywords}
                found[f"{path.name}:{call.lineno}"] = told.get("stderr")
    assert len(found) >= len(KINDS)
    kept = ("subprocess.PIPE", "subprocess.STDOUT")
    assert {place: words for place, words in found.items() if words not in kept} == {}


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (BROKEN, TOLD),
        ("exit 3", "it wrote nothing, and ended with exit code 3"),
        ("kill -9 $$", "it was ended by signal SIGKILL"),
        (None, "it could not be made"),
    ],
)
def test_a_pool_waits_longer_each_time_and_recovers_by_itself(
    script: str | None, told: str, python: Interpreter, pool: Pool, tmp_path: Path
) -> None:
    python.does(script or "exit 1")
    if script is None:
        (python.folder / "python").rename(python.folder / "away")
    (run,) = untrained(tmp_path, "run")
    began = time.monotonic()
    pool.submit(run)
    reached(run, "failed")
    assert told in run.state.reason
    assert told in pool.trouble
    wait_for("two more processes have ended", lambda: pool._deaths >= ENOUGH + 2)
    assert time.monotonic() - began >= 0.05 + 0.1  # two pauses, the second twice as long
    if script is None:
        (python.folder / "away").rename(python.folder / "python")
    python.does(WARM.format(does=f"echo $folder >> {tmp_path}/trained"))
    wait_for("a process has started", lambda: not pool.trouble)
    pool.submit(run)
    wait_for("a run was handed over", lambda: (tmp_path / "trained").exists())
    assert (tmp_path / "trained").read_text() == f"{run.folder}\n"
    wait_for("the processes that ended are forgotten", lambda: pool._deaths == 0)


def test_train_tries_at_once_what_would_be_tried_after_a_pause(
    python: Interpreter, pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "PAUSE", 3600.0)
    monkeypatch.setattr(pool_module, "LONGEST_PAUSE", 3600.0)
    (run,) = untrained(tmp_path, "run")
    for tries in range(ENOUGH, ENOUGH + 3):
        pool.submit(run)
        reached(run, "failed")
        assert python.started == tries
    python.does(WARM.format(does=":"))
    pool.submit(run)
    wait_for("the run is done", lambda: pool.live("") == 0)


def test_a_run_whose_process_ends_before_it_begins_is_tried_anew_and_then_fails_alone(
    python: Interpreter, pool: Pool, tmp_path: Path
) -> None:
    dies = f"printf x >> {tmp_path}/tries; echo 'Error: too large' >&2; exit 1"
    python.does(WARM.format(does=f"case $folder in *poison) {dies};; esac"))
    poison, other = untrained(tmp_path, "poison", "other")
    pool.submit(poison, "a")
    pool.submit(other, "b")
    reached(poison, "failed")
    assert poison.state.reason == "its process ended 3 times before it began: its last words were “Error: too large”"
    assert len((tmp_path / "tries").read_text()) == 3
    wait_for("the other run is done", lambda: pool.live("b") == 0)
    assert other.state.status == "queued"  # this process trains nothing
    assert pool.trouble == ""


def test_a_training_whose_process_is_gone_keeps_its_words(python: Interpreter, pool: Pool, tmp_path: Path) -> None:
    dies = 'sed -i s/queued/running/ "$folder/state.json"; echo "Error: out of memory" >&2; exit 1'
    python.does(WARM.format(does=dies))
    (run,) = untrained(tmp_path, "run")
    pool.submit(run)
    wait_for("the run has the words of its process", lambda: "memory" in run.state.reason)
    words = "stopped at step 0: the process is gone, and its last words were “Error: out of memory”"
    assert (run.state.status, run.state.reason) == ("lost", words)


def test_a_process_that_ends_by_itself_after_a_run_gets_no_other_and_what_it_has_found_is_kept(
    python: Interpreter, pool: Pool, tmp_path: Path
) -> None:
    """It takes its time to go, as one that still makes a film; what it says of devices may be anything."""
    trains = f'printf "$$\n" >> {tmp_path}/trained; printf "\\n\\002last\\n"'
    found = Devices((Device("cpu", "CPU, 2 cores"), Device("cuda:0", "a card", "it is broken")))
    for said in ("{", "[]", json.dumps(found.record())):
        trains += f"; printf '\\n\\002found %s\\n' '{said}'"
    python.does(WARM.format(does=trains) + f"; until [ -e {tmp_path}/go ]; do sleep 0.01; done")
    assert pool.devices is None
    try:
        for number, run in enumerate(untrained(tmp_path, "first", "second", "third"), 1):
            pool.submit(run)
            wait_for("the run is done", lambda: pool.live("") == 0)
            assert len(set((tmp_path / "trained").read_text().split())) == number, "each in a process of its own"
        assert pool.devices == found
        assert pool.trouble == ""
    finally:
        (tmp_path / "go").touch()


def test_a_training_that_ends_before_its_hand_over_does_is_over(python: Interpreter) -> None:
    python.does(WARM.format(does=":"))
    worker = Worker()
    wait_for("the process is ready", worker.ready.is_set)
    pipe = worker.process.stdin

    class Pipe:
        """Comes back from `flush` only when the end of the run has been heard."""

        write, close = pipe.write, pipe.close

        def flush(self) -> None:
            pipe.flush()
            wait_for("the end of the run is heard", lambda: worker.served)

    worker.process.stdin = Pipe()
    (run,) = untrained(python.folder, "run")
    worker.train(run)
    assert worker.run is None
    worker.dismiss()
    wait_for("the process has ended", worker.ended.is_set)


def test_who_waits_for_a_warm_process_is_told_from_who_waits_for_a_turn(
    python: Interpreter, pool: Pool, tmp_path: Path
) -> None:
    """A process that is long about getting ready, for one place."""
    python.does(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; " + WARM.format(does="sleep 60"))
    runs = untrained(tmp_path, "first", "second")
    try:
        for run in runs:
            pool.submit(run)
        assert [pool.preparing(run) for run in runs] == [True, False]
        (tmp_path / "go").touch()
        wait_for("the first run has a process", lambda: pool.place(runs[0])[0] == 0)
        assert pool.preparing(runs[1]) is False
        assert warm_ups.usual() is not None
    finally:
        for worker in pool.workers:
            worker.process.kill()


@pytest.mark.nightly
def test_work_side_by_side_ends_with_the_process_that_does_it() -> None:
    """In a process of its own: a pool begins with the main module, and that of a test is no module."""
    program = """
import os, signal
from transformer.experiments.side_by_side import ProcessGone, side_by_side
for work, order in (((os._exit, [3]), True), ((signal.raise_signal, [9]), False)):
    try:
        list(side_by_side(*work, 2, order))
    except ProcessGone as gone:
        print(gone)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    ends = ("with exit code 3", "by signal SIGKILL")
    assert told.stdout.splitlines() == [f"one of 2 processes side by side was ended {how}" for how in ends]


LINE = st.sampled_from(["", " \t", "a\0b\x1b[0m", "é" * 3, "x" * (LONGEST - 1), "y" * LONGEST, "z" * (2 * LONGEST)])


@given(st.lists(LINE, max_size=2 * LINES))
def test_what_is_kept_of_a_process_is_bounded_and_is_what_came_last(lines: list[str]) -> None:
    words = LastWords()
    for line in lines:
        words.add(line)
    said = [line for line in lines if line.strip()]
    assert len(words.lines) == min(len(said), LINES)
    assert all(len(line) <= LONGEST for line in words.lines)
    for kept, line in zip(reversed(words.lines), reversed(said), strict=False):
        assert kept[: LONGEST - 1] == "".join(c if c.isprintable() else "?" for c in line.rstrip())[: LONGEST - 1]


def test_how_long_a_warm_up_takes_is_the_median_of_what_was_measured_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path / "cache"))
    assert warm_ups.usual() is None
    (tmp_path / "cache").mkdir()
    for kept in ("{", '{"seconds": "x"}', '{"seconds": [-1, 1e9]}'):
        (tmp_path / "cache" / warm_ups.FILE).write_text(kept)
        assert warm_ups.usual() is None
    (tmp_path / "cache" / warm_ups.FILE).write_text('{"seconds": [3, 5, 100]}')
    assert warm_ups.usual() == 5.0
    for _ in range(warm_ups.MOST + 1):
        warm_ups.remember(7.0)
    assert warm_ups.usual() == 7.0
    monkeypatch.setenv("ATTENTION_LAB_CACHE", os.devnull)
    warm_ups.remember(1.0)  # nowhere
    assert warm_ups.usual() is None
