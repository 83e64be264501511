"""A population on a Dask cluster: a scheduler and three worker processes, one of which is killed in the midst of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from transformer.__main__ import main
from transformer.experiments.populations.carry_out import carry_out
from transformer.experiments.populations.cluster import on_cluster, train_far
from transformer.experiments.populations.plan import Sweep, planned
from transformer.training.loop import train
from transformer.model import build
from transformer.training.runs import Run

PATIENCE = 60.0
SLOW = planned(
    "0-4",
    {
        "length": "3", "n_layers": "1", "n_heads": "2", "d_model": "16", "d_ff": "0", "symbols": "4", "device": "cpu",
        "max_steps": "1500", "solved_at": "2", "evaluate_every": "500",
    },
)  # fmt: skip
"""Five trainings of some seconds."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, dict[str, subprocess.Popen[bytes]]]]:
    """The scheduler's address, and three workers by their names."""
    address = tmp_path / "scheduler.json"
    words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--scheduler-file", str(address)]
    started = [subprocess.Popen([*words, "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-jupyter"])]
    workers = {}
    for name in ("one", "two", "three"):
        command = [
            sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(address), "--name", name,
            "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path / name),
        ]  # fmt: skip
        workers[name] = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + PATIENCE
        while not address.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        import json

        yield json.loads(address.read_text())["address"], workers
    finally:
        for process in (*workers.values(), *started):
            process.kill()
            process.wait()


@pytest.mark.nightly
def test_one_of_three_workers_is_killed_and_no_member_is_lost(cluster, tmp_path: Path) -> None:
    address, workers = cluster
    folder = tmp_path / "far"
    growing = carry_out(SLOW, folder, partial(on_cluster, scheduler=address))
    next(growing)
    rows = {}
    killed: list[int] = []

    def kill_one_that_trains() -> None:
        """The worker that is at work on a member which has been written down once."""
        for member in SLOW.members():
            run = Run(folder / member.name)
            if (run.folder / "resume.safetensors").exists() and not killed:
                for process in workers.values():
                    held = Path(f"/proc/{process.pid}/fd")
                    names = [os.readlink(each) for each in held.iterdir() if each.is_symlink()]
                    if str(run.folder / "lock") in names:
                        os.kill(process.pid, signal.SIGKILL)
                        killed.append(run.state.step)

    import threading

    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05) and not killed:
            try:
                kill_one_that_trains()
            except OSError:
                continue

    watching = threading.Thread(target=watch)
    watching.start()
    for found in growing:
        rows = found.rows
    over.set()
    watching.join()
    assert killed
    assert len(rows) == 5
    for member in SLOW.members():
        wanted = list(train(build(member.config), member.config))
        lines = Run(folder / member.name).metrics()
        assert [line["step"] for line in lines] == [step.step for step in wanted]
        assert [line["loss"] for line in lines] == [step.loss for step in wanted]  # to the bit: each alone, as here


def test_a_worker_that_cannot_see_the_folder_sends_it_back_whole(tmp_path: Path) -> None:
    member = Sweep({}, (3,), dict(SLOW.fixed) | {"max_steps": 3}).members()[0]
    rows, files = train_far(str(tmp_path / "elsewhere" / member.name), member.config.to_dict())
    assert rows[0].member == member.name
    assert {"run.json", "row.json", "metrics.jsonl", "film.npz", "snapshots/step-000003.safetensors"} <= set(files)
    assert not (tmp_path / "elsewhere").exists()


def test_no_scheduler_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr("transformer.experiments.populations.cluster.WAIT", "1s")
    assert main(["sweep", "--seeds", "0", "--out", str(tmp_path / "x"), "--on", "tcp://127.0.0.1:9"]) == 2
    assert "there is no scheduler at" in capsys.readouterr().err
