"""The check's end of it: a student's file is opened in a process of its own, and asked from here."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import transformer
from transformer.checking.bench import Answer, Bench, Described, Made, Refused
from transformer.checking.isolation import wire
from transformer.checking.isolation.limits import Limits, can_isolate
from transformer.foundation.checks import UserError
from transformer.foundation.last_words import LastWords, listen, signal_name

PATIENCE = 60.0
"""Seconds for a process to import PyTorch, or to be gone after its time."""
LEAVE = 2.0
"""Seconds for it to clear up when it is told to end."""
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX")
"""What a submission learns of the environment; the rest may be secret."""
START = (
    "import socket, sys; sys.path.insert(0, sys.argv[2])\n"
    "from transformer.checking.isolation.warm import main\n"
    "sys.path.pop(0); main(socket.socket(fileno=int(sys.argv[1])))"
)


class IsolationError(UserError):
    """Nothing can be run here; the message is one sentence."""


class Remote(Bench):
    """A bench in another process. Refused is raised as well when that process has ended."""

    def __init__(
        self, connection: Connection, limits: Limits, ended: Callable[[], dict[str, Any]], words: LastWords
    ) -> None:
        self._connection, self._limits, self._ended, self._words = connection, limits, ended, words
        self.kept: tuple[str, ...] = tuple(self._receive("begun")["kept"])

    def open(self, source, file, name, folder=""):
        return Described.read(self._ask("open", source=source, file=file, name=name, folder=folder))

    def make(self, arguments):
        return Made(**self._ask("make", arguments=arguments))

    def call(self, arguments, names=(), **options):
        return Answer.read(self._ask("call", arguments=arguments, names=names, **options))

    def _ask(self, do: str, **arguments: Any) -> Any:
        with contextlib.suppress(OSError):  # where it is gone, the answer says how
            wire.send(self._connection, {"do": do, "with": arguments})
        answer = self._receive("imported" if do == "open" else "called")
        if "refused" in answer:
            raise Refused(str(answer["refused"]), fatal=bool(answer.get("fatal")))
        return answer["answer"]

    def _receive(self, when: str) -> dict[str, Any]:
        try:
            if not self._connection.poll(self._limits.wall + PATIENCE):
                raise EOFError
            return wire.receive(self._connection)
        except EOFError:
            if when == "begun":
                how = f": {self._words.of(None)}" if self._words.lines else ""
                raise IsolationError(f"the process in which the code should run could not be started{how}") from None
            raise Refused(_ending(self._ended(), when, self._limits), fatal=True) from None
        except wire.WireError as error:
            raise Refused(f"The code cannot be checked: {error}.", fatal=True) from None


def _ending(ended: dict[str, Any], when: str, limits: Limits) -> str:
    """How a process ended that should have answered, in one sentence."""
    code = ended.get("code", 0)
    if ended.get("late") and when == "imported":
        return (
            f"The import of the file took longer than {limits.seconds:g} s: "
            'put what trains or prints under `if __name__ == "__main__":`.'
        )
    if ended.get("late"):
        return f"The code did not return within {limits.seconds:g} s: look for a loop that never ends."
    if code < 0:
        return f"The code crashed its Python process ({signal_name(-code)}) while it was {when}."
    return f"The code ended its own Python process with exit code {code} while it was {when} (`os._exit`?)."


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
        control = self._started()
        ours, theirs = socket.socketpair()
        job = {"limits": dataclasses.asdict(limits), "readable": [str(each.resolve()) for each in readable]}
        with theirs, contextlib.suppress(OSError):  # where it is gone, no answer comes
            socket.send_fds(control, [json.dumps(job).encode()], [theirs.fileno()])
        connection = Connection(ours.detach())
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

    def _started(self) -> socket.socket:
        if not can_isolate():
            raise IsolationError("code is checked on Linux and macOS only: on Windows use WSL")
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
        return {"late": False, "code": 0}
