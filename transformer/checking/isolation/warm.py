"""A process that has imported PyTorch and forks one child for each submission; only the child runs a student's code."""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import os
import signal
import socket
import tempfile
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from transformer.checking.bench import Local, fault_of
from transformer.checking.faults import Fault, Refused
from transformer.checking.isolation import barriers, folders, wire
from transformer.checking.isolation.limits import CUT_OFF, MOST_THREADS, Limits, enter

TICK = 0.01
"""Seconds between two looks at a child."""
LOOKS = 20
"""Looks at a child to one at what it has written."""
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
        _hear_the_end(False)
        folder = Path(tempfile.mkdtemp(prefix="attention-lab-check-"))
        child = os.fork()
        if child == 0:
            _run(control, files[0], job, folder)
        try:
            _hear_the_end(True)
            os.close(files[0])
            ended = _await(child, folder, Limits(**job["limits"]))
        finally:
            _hear_the_end(False)
            _kill(child)  # it, or what is left of its session
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
            folders.remove(folder)
            _hear_the_end(True)
        control.send(json.dumps(ended).encode())


def _leave(*_: object) -> None:
    raise SystemExit


def _hear_the_end(heard: bool) -> None:
    """Let SIGTERM through, or keep it until it is: a folder that is being made or removed would be left behind."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK if heard else signal.SIG_BLOCK, {signal.SIGTERM})


def _prepare() -> None:
    """Do once what PyTorch does at its first step, so that no child has to.

    But no backward pass: with a GPU in sight PyTorch makes threads for it, and the children could make none any more.
    """
    x = torch.randn(2, 2, requires_grad=True)
    (x @ x).softmax(-1).sum()


def _run(control: socket.socket, file: int, job: dict[str, Any], folder: Path) -> None:
    """The child's life. It never returns."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell began us in the background
        _hear_the_end(True)
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
        os._exit(CUT_OFF)


def serve(connection: Connection, bench: Local, kept: tuple[str, ...]) -> None:
    """Answer each request with what the bench says, until nobody asks any more. Raises OSError and EOFError then."""
    wire.send(connection, wire.packed({"number": 0, "kept": kept}))
    for number in itertools.count(1):
        request = wire.unpacked(wire.receive(connection))
        wire.send(connection, reply(bench, number, request))


def reply(bench: Local, number: int, request: Mapping[str, Any]) -> wire.Frames:
    """The frames that answer one request: what the bench says, or what went wrong."""
    try:
        return wire.packed({"number": number, "answer": getattr(bench, request["do"])(**request["with"])})
    except Refused as refused:
        fault = refused.fault or fault_of(refused, bench.file)
    except wire.TooLong:
        fault = Fault("long answer", fatal=True)
    except BaseException as error:  # KeyboardInterrupt as well: no terminal belongs to this process
        fault = fault_of(error, bench.file, importing=request["do"] == "open")
    return wire.packed({"number": number, "refused": fault})


def _await(child: int, folder: Path, limits: Limits) -> dict[str, Any]:
    """Wait until a child has ended, or end it where it takes more than it may; how it ended."""
    deadline, late, over = time.monotonic() + limits.wall, False, ""
    for look in itertools.count():
        found, status, used = os.wait4(child, os.WNOHANG)
        if found:
            break
        if not late and not over:
            late = time.monotonic() > deadline
            over = "threads" if _threads(child) > MOST_THREADS else ""
            if look % LOOKS == 0 and not folders.is_small(folder):
                over = "files"
            if late or over:
                _kill(child)
        time.sleep(TICK)
    code = os.waitstatus_to_exitcode(status)
    computed = used.ru_utime + used.ru_stime
    # The system ends a process by these signals at its limit, which it counts by ticks: on a busy machine far too high.
    # Code that has computed for less than half of it has ended itself.
    late = late or (code in (-signal.SIGXCPU, -signal.SIGKILL) and computed >= limits.cpu / 2)
    return {"late": late, "over": over, "code": code}


def _threads(child: int) -> int:
    """How many threads a process has; 0 where the system does not tell."""
    try:
        return os.stat(f"/proc/{child}/task").st_nlink - 2
    except OSError:
        return 0


def _kill(child: int) -> None:
    for end in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            end(child, signal.SIGKILL)
