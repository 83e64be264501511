"""Trainings that are killed, and taken up again: real processes, each phase, nothing lost but a few steps."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from tests.kit.driving import dashboard
from tests.kit.killing import CONFIG, KILLS
from tests.kit.runs import reached
from tests.kit.waiting import PATIENCE, wait_for
from transformer.config import RunConfig, TrainingConfig
from transformer.training.exchange.inspection import faults
from transformer.training.listing import list_runs
from transformer.training.queue.pool import Pool
from transformer.training.recording import develop, record
from transformer.training.runs import Run, RunError, State

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).parents[3]
UNSOLVED = RunConfig(
    task=CONFIG.task, model=CONFIG.model, training=TrainingConfig(max_steps=100_000, solved_at=2, device="cpu")
)
SETTINGS = "layers=1&heads=1&width=16&length=4&max_steps=300&seed=3"
"""Of a training that takes about a second."""


def curve(run: Run) -> list[tuple]:
    return [(line["step"], line["loss"], line["gradient_norm"], line.get("accuracy")) for line in run.metrics()]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Run:
    run = Run.create(tmp_path_factory.mktemp("unbroken") / "run", CONFIG)
    for _ in record(run):
        pass
    develop(run)
    return run


@pytest.mark.parametrize("seed", range(2))
def test_kills_in_each_phase_change_no_number(unbroken, tmp_path, seed):
    """After each kill every file is whole and no snapshot is missing (see the kit); at the end nothing differs."""
    command = [sys.executable, "-m", "tests.kit.killing", str(tmp_path / "run"), str(seed)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=4 * PATIENCE)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"{len(KILLS)}\n"
    run = Run(tmp_path / "run")
    assert run.state.status == "finished"
    assert curve(run) == curve(unbroken)
    assert list(run.snapshots()) == list(unbroken.snapshots())
    assert run.digest() == unbroken.digest()
    assert run.evaluation == unbroken.evaluation
    assert faults(run) == []
    assert list(run.folder.rglob(".*.tmp")) == []
    film, whole = (np.load(each.folder / "film.npz") for each in (run, unbroken))
    assert film.files == whole.files
    assert all(np.array_equal(film[name], whole[name]) for name in whole.files)


class Tab:
    """A page of a server as a browser opens it, which draws nothing."""

    def __init__(self, address: str) -> None:
        url = address.replace("http", "ws") + "/_stcore/stream"
        self.socket = connect(url, subprotocols=["streamlit"], max_size=None, ping_interval=None, legacy=True)

    def open(self, query: str, clicked: str = "") -> None:
        """Ask for a view; `clicked` is the button that is pressed with it. Nothing is waited for."""
        asked = BackMsg()
        asked.rerun_script.query_string = query
        if clicked:
            asked.rerun_script.widget_states.widgets.add(id=clicked, trigger_value=True)
        self.socket.send(asked.SerializeToString())

    def button(self, label: str) -> str:
        """What a button is called, once the page is drawn to its end."""
        found = ""
        while True:
            message = ForwardMsg.FromString(self.socket.recv(PATIENCE))
            element = message.delta.new_element
            if element.WhichOneof("type") == "button" and element.button.label == label:
                found = element.button.id
            if message.WhichOneof("type") == "script_finished":
                return found


def brought_to_its_end(run: Run) -> None:
    """Wait for the worker that a killed server left; once its run is taken for lost, take it up."""

    def look() -> State:
        if run.resumable:
            with contextlib.suppress(RunError):  # its worker was slow, and has it by now
                for _ in record(run):
                    pass
        return run.state

    wait_for(f"{run.name} has ended", look, lambda state: state.status == "finished" and not run.waiting)


def test_kills_of_the_server_lose_no_run(tmp_path, monkeypatch):
    """A page is open, and a training begun by it; the server starts again each time, and no run differs at the end."""
    dice, root = random.Random(0), tmp_path / "runs"
    for number in range(2):
        log = tmp_path / f"log-{number}"
        with dashboard(root, log, killed=True) as address:
            tab = Tab(address)
            tab.open(SETTINGS)
            train = tab.button("Train")
            assert train
            before = len(list_runs(root))
            tab.open(SETTINGS, train)
            if number:
                wait_for("the click was heard", lambda: len(list_runs(root)), lambda runs, few=before: runs > few)
            time.sleep(number * dice.uniform(0.2, 0.8))
        tab.socket.close()
        assert "Traceback" not in log.read_text(errors="replace")
        for run in list_runs(root):
            assert not [each for each in faults(run) if "metrics.jsonl" not in each]
    monkeypatch.setattr("transformer.training.runs.SILENT_AFTER", 8.0)  # queued, and given to no worker
    runs = list_runs(root)
    assert runs  # the second click was heard; the first may have been cut off
    unbroken = Run.create(tmp_path / "unbroken", runs[0].config)
    for _ in record(unbroken):
        pass
    for run in runs:
        brought_to_its_end(run)
        assert faults(run) == []
        assert curve(run) == curve(unbroken)
        assert run.digest() == unbroken.digest()


@pytest.fixture(scope="module")
def pool():
    pool = Pool(most=1)
    pool.start()
    yield pool
    pool.close()


@pytest.fixture
def train(pool, tmp_path):
    """Begins runs through the pool; what is still training after the test is stopped."""

    def begin(config: RunConfig, name: str) -> Run:
        run = Run.create(tmp_path / name, config)
        pool.submit(run)
        return run

    yield begin
    for run in list_runs(tmp_path):
        run.request_stop()
    wait_for("no worker has a run", lambda: [worker.run for worker in pool.workers], lambda runs: not any(runs))


def test_a_killed_worker_is_seen_at_once_and_another_takes_the_run_up(pool, train):
    run = train(UNSOLVED, "killed")
    reached(run, past=30)
    (worker,) = [worker for worker in pool.workers if worker.run == run]
    os.kill(worker.process.pid, signal.SIGKILL)
    state = reached(run, "lost")
    assert state.reason == f"stopped at step {state.step}: the process is gone"
    assert run.resumable
    last = len(run.metrics())

    pool.submit(run)
    reached(run, "running", past=last)
    assert [line["step"] for line in run.metrics()][:last] == list(range(1, last + 1))


def test_trainings_wait_for_a_place_and_can_be_taken_out_of_the_queue(pool, train):
    first, second, third = (train(UNSOLVED, name) for name in ("first", "second", "third"))
    reached(first, past=0)
    assert second.state.status == third.state.status == "queued"
    assert pool.withdraw(third)
    assert not pool.withdraw(third)
    assert third.state.status == "stopped"
    first.request_stop()
    reached(second, past=0)
    assert first.state.status == "stopped"
    assert third.state.reason == "taken out of the queue before its turn"


def test_a_paused_training_gives_up_its_place(train):
    first = train(UNSOLVED, "first")
    reached(first, past=0)
    first.ask(pause_at=0)
    reached(first, "paused")
    second = train(UNSOLVED, "second")
    reached(second, past=0)
    assert first.state.status == "paused"


def test_nobody_trains_what_another_process_is_training(train):
    run = train(UNSOLVED, "taken")
    reached(run, past=0)
    with pytest.raises(ValueError, match="another process is training taken"):
        next(record(run))
    reached(run, past=run.state.step)


def test_a_closed_pool_lets_its_trainings_go_on_and_says_of_the_waiting_that_they_will_not(tmp_path):
    pool = Pool(most=1)
    begun, waiting = (Run.create(tmp_path / name, UNSOLVED) for name in ("begun", "waiting"))
    pool.submit(begun)
    pool.submit(waiting)
    reached(begun, past=0)
    (worker,) = [worker for worker in pool.workers if worker.run == begun]
    pool.close()
    assert waiting.state.status == "stopped"
    assert waiting.state.reason == "the dashboard was closed before its turn"
    assert waiting.resumable
    reached(begun, past=begun.state.step)
    begun.request_stop()
    reached(begun, "stopped")
    assert worker.ended.wait(PATIENCE)


def test_a_full_disk_ends_a_training_with_its_reason_and_every_file_whole(tmp_path):
    """The metrics reach the largest size that the system allows a file here: the same error as a full disk gives."""
    run = Run.create(tmp_path / "full", UNSOLVED)
    program = (
        "import resource, sys; from pathlib import Path; from transformer.training.recording import record\n"
        "from transformer.training.runs import Run\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))\n"
        "list(record(Run(Path(sys.argv[1]))))"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(run.folder)], capture_output=True, timeout=PATIENCE)
    assert ended.returncode == 1
    assert run.state.status == "failed"
    assert run.state.reason == "it could not be written down: file too large"
    assert run.resumable
    written = run.metrics()
    assert [line["step"] for line in written] == list(range(1, len(written) + 1))
    last = max(run.snapshots())

    steps = record(run)  # there is room again
    assert next(steps).step > last
    steps.close()
    assert [line["step"] for line in run.metrics()] == list(range(1, run.state.step + 1))
