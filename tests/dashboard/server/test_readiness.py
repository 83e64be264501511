"""The address that says whether people may be sent here: what it waits for, and what it says meanwhile."""

from __future__ import annotations

import os
import threading
import types
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from starlette.applications import Starlette

from dashboard.server import background, http, roles
from tests.kit.driving import dashboard
from tests.kit.gpus import sitecustomize as gpu
from tests.kit.rooms import asgi
from tests.kit.waiting import wait_for


@pytest.fixture(autouse=True)
def _all_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(roles.ASKED, raising=False)
    monkeypatch.setattr("transformer.training.runs.ROOT", tmp_path)
    warm(monkeypatch, True)
    monkeypatch.setattr(background, "torch", lambda: types)


def warm(monkeypatch: pytest.MonkeyPatch, *ready: bool) -> None:
    """As many training processes, some of them warm."""
    workers = [types.SimpleNamespace(ready=threading.Event()) for _ in ready]
    for worker, is_ready in zip(workers, ready, strict=True):
        if is_ready:
            worker.ready.set()
    monkeypatch.setattr(background.pool, "workers", workers)


def answer() -> tuple[int, str]:
    """Status and words, which nobody keeps, from the very route of the server."""
    status, headers, body = asgi.answer(Starlette(routes=http.routes("heads")), {"path": f"{http.base()}/ready"})
    assert headers["cache-control"] == "no-store"
    return status, body.decode()


def test_it_is_ready_once_all_is_there_and_leaves_nothing_behind(tmp_path: Path) -> None:
    assert answer() == (200, "ready")
    assert list(tmp_path.iterdir()) == []


def test_it_waits_for_pytorch_and_for_one_warm_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for ready in ((), (False,), (False, False), (False, True)):
        warm(monkeypatch, *ready)
        assert answer() == ((200, "ready") if any(ready) else (503, "No training process is warm yet."))
    monkeypatch.setattr(background, "torch", lambda: None)
    assert answer() == (503, "PyTorch is not imported yet.")


def test_without_the_folder_of_runs_nobody_is_sent_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer.training.runs.ROOT", tmp_path / "gone")
    assert answer() == (503, "The folder of runs cannot be written: No such file or directory.")
    monkeypatch.setenv(roles.ASKED, "viewer")
    assert answer() == (503, "The folder of runs is not there.")


def test_a_read_only_folder_is_enough_for_viewers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: object) -> None:
        raise OSError(30, os.strerror(30))

    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    assert answer() == (503, "The folder of runs cannot be written: Read-only file system.")
    monkeypatch.setenv(roles.ASKED, "viewer")
    assert answer() == (200, "ready")


def test_it_says_why_no_training_process_starts_and_not_once_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background.pool, "_deaths", 3)
    monkeypatch.setattr(background.pool, "_how", "its last words were “Error: no GPU”")
    for worker in background.pool.workers:
        worker.alive = True  # type: ignore[misc]
    assert answer() == (200, "ready")
    warm(monkeypatch, False)
    assert answer() == (
        503,
        "No training can begin, because its process ended 3 times in a row before it could train: "
        "its last words were “Error: no GPU”.",
    )


@pytest.mark.nightly
def test_a_server_beside_a_gpu_that_cannot_be_used_is_ready_and_leaves_it_to_its_workers(tmp_path: Path) -> None:
    """With its real processes, from the start until it has taken first steps itself."""
    log = tmp_path / "log"
    with dashboard(
        runs=tmp_path, ATTENTION_LAB_CACHE=str(tmp_path / "cache"), **gpu.environment("taken", log)
    ) as address:

        def ready() -> int:
            try:
                with urllib.request.urlopen(f"{address}/ready") as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                return error.code

        wait_for("the server is ready", ready, lambda status: status == 200)
        asked = wait_for("a worker has asked for the GPU", lambda: log.exists() and log.read_text().split("\n")[:-1])
    programs = {tuple(line.split()[:3:2]) for line in asked}
    assert ("worker.py", "seen") in programs
    assert {seen for program, seen in programs if program != "worker.py"} <= {"hidden"}
    assert not [line for line in asked if "worker.py" not in line and "/torch/" not in line]
