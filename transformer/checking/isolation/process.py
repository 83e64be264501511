"""The check's end of it: a student's file is opened in a process of its own, and asked from here."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import transformer
from transformer.checking.bench import Answer, Bench
from transformer.checking.faults import Refused
from transformer.checking.isolation import folders, wire
from transformer.checking.isolation.answers import ForgedError, Message
from transformer.checking.isolation.limits import CUT_OFF, MB, MOST_THREADS, Limits, can_isolate
from transformer.foundation import gpus
from transformer.foundation.checks import UserError, reason
from transformer.foundation.last_words import LastWords, listen, signal_name

PATIENCE = 60.0
"""Seconds for a process to import PyTorch, or to be gone after its time."""
LEAVE = 2.0
"""Seconds for it to clear up when it is told to end."""
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX")
"""What a submission learns of the environment; the rest may be secret."""
CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSYS, signal.SIGTRAP)
START = (
    "import socket, sys; sys.path.insert(0, sys.argv[2])\n"
    "from transformer.checking.isolation.warm import main\n"
    "sys.path.pop(0); main(socket.socket(fileno=int(sys.argv[1])))"
)

T = TypeVar("T")


class IsolationError(UserError):
    """Nothing can be run here; the message is one sentence."""


def require_isolation() -> None:
    """Raise IsolationError where no process can be isolated."""
    if not can_isolate():
        raise IsolationError("code is checked on Linux and macOS only: on Windows use WSL")


class Remote(Bench):
    """A bench in another process. Refused is raised as well when that process has ended, or answers what none does."""

    def __init__(
        self, connection: Connection, limits: Limits, ended: Callable[[], dict[str, Any]], words: LastWords
    ) -> None:
        self._connection, self._limits, self._ended = connection, limits, ended
        self._number = 0
        self._over: Refused | None = None
        try:
            self.kept = self._received().promises()
        except (EOFError, wire.TooLong, ForgedError):
            how = f": {words.of(None)}" if words.lines else ""
            raise IsolationError(f"the process in which the code should run could not be started{how}") from None

    def open(self, source, file, name, folder=""):
        return self._ask("open", Message.described, source=source, file=file, name=name, folder=folder)

    def make(self, arguments):
        return self._ask("make", Message.made, arguments=arguments)

    def call(self, arguments, names=(), **options):
        def read(message: Message) -> Answer:
            recorded, gradients = (bool(options.get(each)) for each in ("record", "gradients"))
            return message.answer(arguments, recorded=recorded, gradients=gradients)

        return self._ask("call", read, arguments=arguments, names=names, **options)

    def _ask(self, do: str, read: Callable[[Message], T], **arguments: Any) -> T:
        """The answer to a request. Raises Refused, and after a fatal one the same for ever."""
        if self._over is not None:
            raise self._over
        try:
            return self._answered(do, read, arguments)
        except Refused as refused:
            self._over = refused if refused.fatal else None
            raise

    def _answered(self, do: str, read: Callable[[Message], T], arguments: Mapping[str, Any]) -> T:
        self._number += 1
        with contextlib.suppress(OSError):  # where it is gone, the answer says how
            wire.send(self._connection, wire.packed({"do": do, "with": arguments}))
        try:
            message = self._received()
            if fault := message.fault():
                raise Refused.of(fault)
            return read(message)
        except EOFError:
            when = "imported" if do == "open" else "called"
            raise Refused(_ending(self._ended(), when, self._limits), fatal=True) from None
        except (wire.TooLong, ForgedError) as error:
            sentence = f"The code’s process answered what no bench answers: {error}."
            raise Refused(sentence, fatal=True) from None

    def _received(self) -> Message:
        """The next message. Raises EOFError where none comes, TooLong and ForgedError."""
        if not self._connection.poll(self._limits.wall + PATIENCE):
            raise EOFError
        return Message(wire.receive(self._connection), self._number)


def _ending(ended: Mapping[str, Any], when: str, limits: Limits) -> str:
    """How a process ended that should have answered, in one sentence: what is known, and what cannot be told apart."""
    code, over = ended.get("code"), ended.get("over")
    if over == "threads":
        return f"The code starts more than {MOST_THREADS} threads."
    if over == "files":
        return (
            f"The code writes more than {folders.MOST_BYTES // MB} MB, or more than {folders.MOST_FILES:,} files, or "
            "nests its folders too deeply."
        )
    if ended.get("late") and when == "imported":
        return (
            f"The import of the file took longer than {limits.seconds:g} s: "
            'put what trains or prints under `if __name__ == "__main__":`.'
        )
    if ended.get("late"):
        return f"The code did not return within {limits.seconds:g} s: look for a loop that never ends."
    if not isinstance(code, int):
        return f"The code’s Python process is gone since it was {when}; what ended it is not known."
    if code == CUT_OFF:
        return (
            f"The code’s Python process could not answer any more while it was {when}: the code closed the connection "
            f"of its answers, or ended with exit code {CUT_OFF}."
        )
    if code >= 0:
        return f"The code ended its own Python process with exit code {code} while it was {when} (`os._exit`?)."
    if -code in CRASHES:
        return f"The code crashed its Python process ({signal_name(-code)}) while it was {when}."
    why: dict[int, str] = {
        signal.SIGKILL: ": by the code itself, or by the system where memory runs out",
        signal.SIGABRT: ": by `os.abort`, or by a library that could not go on",
    }
    told = why.get(-code, "")
    return f"The code’s Python process was ended by the {signal_name(-code)} while it was {when}{told}."


class Warm:
    """A process with PyTorch imported, in which one submission after the other gets a child of its own.

    It is started when it is first needed, and again when it is gone. One thread uses it at a time.
    """

    def __init__(self, core: int | None = None) -> None:
        self.core = core
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._words = LastWords()

    @contextlib.contextmanager
    def bench(self, limits: Limits, readable: Sequence[Path] = ()) -> Iterator[Remote]:
        """A bench in a new child, for one submission, which may read below `readable`. Raises IsolationError."""
        job = {"limits": dataclasses.asdict(limits), "readable": [str(each.resolve()) for each in readable]}
        connection = self._given(json.dumps(job).encode(), limits)
        ended = functools.cache(functools.partial(self._ended, limits.wall + PATIENCE))
        try:
            yield Remote(connection, limits, ended, self._words)
        finally:
            connection.close()
            ended()

    def start(self) -> None:
        """Let it import PyTorch before the first submission is there. Raises IsolationError."""
        self._started()

    def close(self) -> None:
        """End it, a child that it may have, and that child's folder."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(LEAVE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = self._control = None

    def __enter__(self) -> Warm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _given(self, job: bytes, limits: Limits) -> Connection:
        """A connection to a child that a job was given to, begun anew where the process is gone."""
        ours, theirs = socket.socketpair()
        seconds = int(limits.wall + PATIENCE) + 1
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):  # where something outlives the child, and is silent
            ours.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", seconds, 0))
        with theirs:
            try:
                socket.send_fds(self._started(), [job], [theirs.fileno()])
            except OSError:  # it ended since the last one
                self.close()
                try:
                    socket.send_fds(self._started(), [job], [theirs.fileno()])
                except OSError as error:
                    ours.close()
                    how = self._words.of(None) if self._words.lines else reason(error)
                    raise IsolationError(f"no process can be started here: {how}") from None
        return Connection(ours.detach())

    def _started(self) -> socket.socket:
        """The socket that jobs are given through. Raises IsolationError, and OSError where no process can be made."""
        require_isolation()
        if self._process is None or self._process.poll() is not None or self._control is None:
            self.close()
            ours, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    [
                        sys.executable,
                        "-P",
                        "-c",
                        START,
                        str(theirs.fileno()),
                        str(Path(transformer.__file__).parents[1]),
                    ],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    env={
                        **{name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
                        **gpus.HIDDEN,
                        "OMP_NUM_THREADS": "1",
                        "MKL_NUM_THREADS": "1",
                        "TORCHDYNAMO_DISABLE": "1",
                        "PYTHONHASHSEED": "0",
                    },
                )
            if self.core is not None and hasattr(os, "sched_setaffinity"):
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(self._process.pid, {self.core})
            self._control, self._words = ours, listen(self._process)
        return self._control

    def _ended(self, patience: float) -> dict[str, Any]:
        """How the child ended; the process itself is ended where it does not tell."""
        assert self._control is not None
        try:
            self._control.settimeout(patience)
            said = self._control.recv(2**16)
            self._control.settimeout(None)
            if said:
                found: dict[str, Any] = json.loads(said)
                return found
        except OSError:
            pass
        self.close()
        return {}
