"""Trainings that are killed, and taken up again: real processes, random moments, nothing lost but a few steps."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.kit.killing import CONFIG
from transformer.config import RunConfig, TrainingConfig
from transformer.training.pool import Pool
from transformer.training.recording import record
from transformer.training.runs import Run, list_runs

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).parents[3]
UNSOLVED = RunConfig(
    task=CONFIG.task, model=CONFIG.model, training=TrainingConfig(max_steps=100_000, solved_at=2, device="cpu")
)
PATIENCE = 60.0


def curve(run: Run) -> list[tuple]:
    return [(line["step"], line["loss"], line["gradient_norm"], line.get("accuracy")) for line in run.metrics()]


def wait_for(condition) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Run:
    run = Run.create(tmp_path_factory.mktemp("unbroken") / "run", CONFIG)
    for _ in record(run):
        pass
    return run


@pytest.mark.parametrize("seed", [0, 1])
def test_twenty_five_kills_at_random_moments_change_no_number(unbroken, tmp_path, seed):
    """After each kill every file is whole and no snapshot is missing (see the kit); at the end nothing differs."""
    command = [sys.executable, "-m", "tests.kit.killing", str(tmp_path / "run"), "25", str(seed)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=4 * PATIENCE)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "25\n"
    run = Run(tmp_path / "run")
    assert run.state.status == "finished"
    assert curve(run) == curve(unbroken)
    assert list(run.snapshots()) == list(unbroken.snapshots())
    assert run.digest() == unbroken.digest()
    assert run.evaluation == unbroken.evaluation


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
    wait_for(lambda: not any(worker.run for worker in pool.workers))


def test_a_killed_worker_is_seen_at_once_and_another_takes_the_run_up(pool, train):
    run = train(UNSOLVED, "killed")
    wait_for(lambda: run.state.step > 30)
    (worker,) = [worker for worker in pool.workers if worker.run == run]
    os.kill(worker.process.pid, signal.SIGKILL)
    wait_for(lambda: not run.waiting)
    state = run.state
    assert state.status == "lost"
    assert state.reason == f"stopped at step {state.step}: the process is gone"
    assert run.resumable
    last = len(run.metrics())

    pool.submit(run)
    wait_for(lambda: run.state.status == "running" and run.state.step > last)
    assert [line["step"] for line in run.metrics()][:last] == list(range(1, last + 1))


def test_trainings_wait_for_a_place_and_can_be_taken_out_of_the_queue(pool, train):
    first, second, third = (train(UNSOLVED, name) for name in ("first", "second", "third"))
    wait_for(lambda: first.state.step > 0)
    assert second.state.status == third.state.status == "queued"
    assert pool.withdraw(third)
    assert not pool.withdraw(third)
    assert third.state.status == "stopped"
    first.request_stop()
    wait_for(lambda: second.state.step > 0)
    assert first.state.status == "stopped"
    assert third.state.reason == "taken out of the queue before its turn"


def test_a_paused_training_gives_up_its_place(train):
    first = train(UNSOLVED, "first")
    wait_for(lambda: first.state.step > 0)
    first.ask(pause_at=0)
    wait_for(lambda: first.state.status == "paused")
    second = train(UNSOLVED, "second")
    wait_for(lambda: second.state.step > 0)
    assert first.state.status == "paused"


def test_nobody_trains_what_another_process_is_training(train):
    run = train(UNSOLVED, "taken")
    wait_for(lambda: run.state.step > 0)
    with pytest.raises(ValueError, match="another process is training taken"):
        next(record(run))
    before = run.state.step
    wait_for(lambda: run.state.step > before)


def test_a_closed_pool_lets_its_trainings_go_on_and_says_of_the_waiting_that_they_will_not(tmp_path):
    pool = Pool(most=1)
    begun, waiting = (Run.create(tmp_path / name, UNSOLVED) for name in ("begun", "waiting"))
    pool.submit(begun)
    pool.submit(waiting)
    wait_for(lambda: begun.state.step > 0)
    (worker,) = [worker for worker in pool.workers if worker.run == begun]
    pool.close()
    assert waiting.state.status == "stopped"
    assert waiting.state.reason == "the dashboard was closed before its turn"
    assert waiting.resumable
    step = begun.state.step
    wait_for(lambda: begun.state.step > step)
    begun.request_stop()
    wait_for(lambda: begun.state.status == "stopped")
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
