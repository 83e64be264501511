"""A process that has imported PyTorch and forks one child for each submission; only the child runs a student's code."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import signal
import socket
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from transformer.checking.bench import Bench, Local, Refused
from transformer.checking.isolation import barriers, wire
from transformer.checking.isolation.limits import Limits, enter

TICK = 0.01
"""Seconds between two looks at a child."""
LONGEST_JOB = 2**16


def main(control: socket.socket) -> None:
    """Fork a child for each job that comes in, one after the other, and tell how it ended; until nobody asks.

    Told to end (SIGTERM), it ends its child first, and removes that child's folder.
    """
    with contextlib.suppress(SystemExit):
        _fork_for_each(control)
    os._exit(0)  # Python's own end would take a while, and leaves nothing to clear up


def _fork_for_each(control: socket.socket) -> None:
    torch.set_num_threads(1)
    _prepare()
    gc.freeze()
    signal.signal(signal.SIGTERM, _leave)
    while True:
        message, files, *_ = socket.recv_fds(control, LONGEST_JOB, 1)
        if not message:
            return
        job = json.loads(message)
        folder = Path(tempfile.mkdtemp(prefix="attention-lab-check-"))
        child = os.fork()
        if child == 0:
            _run(control, files[0], job, folder)
        try:
            os.close(files[0])
            ended = _await(child, Limits(**job["limits"]).wall)
        finally:
            _kill(child)  # it, or what is left of its session
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
            shutil.rmtree(folder, ignore_errors=True)
        control.send(json.dumps(ended).encode())


def _leave(*_: object) -> None:
    raise SystemExit


def _prepare() -> None:
    """Do once what PyTorch does at its first step, so that no child has to."""
    x = torch.randn(2, 2, requires_grad=True)
    (x @ x).softmax(-1).sum().backward()


def _run(control: socket.socket, file: int, job: dict[str, Any], folder: Path) -> None:
    """The child's life. It never returns."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        control.close()
        os.setsid()
        barriers.end_with_parent()
        # Nothing that is printed goes anywhere: what Python prints is counted, the rest is lost.
        nothing = os.open(os.devnull, os.O_RDWR)
        for each in (0, 1, 2):
            os.dup2(nothing, each)
        limits = Limits(**job["limits"])
        kept = enter(limits, folder, [Path(each) for each in job["readable"]])
        serve(Connection(file), Local(printed=limits.printed), kept)
    finally:
        os._exit(0)


def serve(connection: Connection, bench: Bench, kept: tuple[str, ...]) -> None:
    """Answer each request with what the bench says, until nobody asks any more."""
    wire.send(connection, {"kept": list(kept)})
    while True:
        try:
            request = wire.receive(connection)
        except EOFError:
            return
        try:
            answer = {"answer": getattr(bench, request["do"])(**request["with"])}
            wire.send(connection, answer)
        except Refused as refused:
            wire.send(connection, {"refused": str(refused), "fatal": refused.fatal})
        except wire.WireError as error:
            wire.send(connection, {"refused": f"The code cannot be checked: {error}.", "fatal": True})


def _await(child: int, seconds: float) -> dict[str, Any]:
    """Wait until a child has ended, or end it; how it ended."""
    deadline, late = time.monotonic() + seconds, False
    while not (found := os.waitpid(child, os.WNOHANG))[0]:
        if not late and time.monotonic() > deadline:
            late = True
            _kill(child)
        time.sleep(TICK)
    code = os.waitstatus_to_exitcode(found[1])
    return {"late": late or code == -signal.SIGXCPU, "code": code}


def _kill(child: int) -> None:
    for end in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            end(child, signal.SIGKILL)
