"""A population on a Dask cluster: a scheduler and three worker processes, one of which is killed in the midst of it."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from distributed import Client

from tests.kit.waiting import PATIENCE, wait_for
from transformer.__main__ import main
from transformer.experiments.populations.carry_out import carry_out
from transformer.experiments.populations.cluster import on_cluster, train_far
from transformer.experiments.populations.plan import Sweep, planned
from transformer.model import build
from transformer.training.loop import train
from transformer.training.runs import Run

ROOT = Path(__file__).parents[3]
FIVE = planned(
    "0-4",
    {
        "length": "3", "n_layers": "1", "n_heads": "2", "d_model": "16", "d_ff": "0", "symbols": "4", "device": "cpu",
        "max_steps": "60", "solved_at": "2", "evaluate_every": "30",
    },
)  # fmt: skip
"""Five trainings, all of as many steps."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The scheduler's address, and three workers, of which the first is killed in the midst of its first training."""
    address = tmp_path / "scheduler.json"
    words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--scheduler-file", str(address)]
    started = [subprocess.Popen([*words, "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-jupyter"])]
    workers = []
    for name in ("one", "two", "three"):
        command = [
            sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(address), "--name", name,
            "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path / name),
        ]  # fmt: skip
        mortal = ["--preload", "tests.kit.cut_off"] if name == "one" else []
        workers.append(subprocess.Popen([*command, *mortal], cwd=ROOT))
    try:
        yield wait_for("the scheduler's address", lambda: written(address)), workers
    finally:
        for process in (*workers, *started):
            process.kill()
            process.wait()


def written(file: Path) -> str:
    """The address in a scheduler's file; empty until it is there whole: for a moment the file is there without it."""
    with contextlib.suppress(OSError, ValueError):
        return str(json.loads(file.read_text())["address"])
    return ""


@pytest.mark.nightly
def test_one_of_three_workers_is_killed_and_no_member_is_lost(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    address, workers = cluster
    with Client(address) as client:
        client.wait_for_workers(len(workers), timeout=PATIENCE)  # each has a member to train
    folder = tmp_path / "far"
    *_, found = carry_out(FIVE, folder, partial(on_cluster, scheduler=address))
    assert workers[0].wait(PATIENCE) == -signal.SIGKILL
    assert [process.poll() for process in workers[1:]] == [None, None]
    assert len(found.rows) == 5
    for member in FIVE.members():
        wanted = list(train(build(member.config), member.config))
        lines = Run(folder / member.name).metrics()
        assert [line["step"] for line in lines] == [step.step for step in wanted]
        assert [line["loss"] for line in lines] == [step.loss for step in wanted]  # to the bit: each alone, as here


def test_a_worker_that_cannot_see_the_folder_sends_it_back_whole(tmp_path: Path) -> None:
    member = Sweep({}, (3,), dict(FIVE.fixed) | {"max_steps": 3}).members()[0]
    rows, files = train_far(str(tmp_path / "elsewhere" / member.name), member.config.to_dict())
    assert rows[0].member == member.name
    assert {"run.json", "row.json", "metrics.jsonl", "film.npz", "snapshots/step-000003.safetensors"} <= set(files)
    assert not (tmp_path / "elsewhere").exists()


def test_no_scheduler_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr("transformer.experiments.populations.cluster.WAIT", "100ms")
    assert main(["sweep", "--seeds", "0", "--out", str(tmp_path / "x"), "--on", "tcp://127.0.0.1:9"]) == 2
    assert "there is no scheduler at" in capsys.readouterr().err
