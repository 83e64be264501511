"""A check behind the page: one a session, a few at once on a server, the others in turn; it can be stopped.

The judging is done in a process of its own (`transformer/checking/serving.py`), and the code runs in a child of that
one's. So nothing of a check can slow a page, or draw from the random numbers of this process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Timer
from typing import Any

import transformer
from dashboard.app_pages.learn.check.verdict import Explained, explained
from dashboard.models import background
from dashboard.models.background import Lane
from dashboard.view import permission
from transformer.checking.isolation.limits import PROMISES, Limits, can_isolate, can_read
from transformer.foundation.checks import UserError
from transformer.foundation.foreign import MOST_WORDS, record
from transformer.foundation.last_words import LastWords, listen
from transformer.training import runs

AT_ONCE = 2
"""Checks that go on at the same time on a server."""
MOST_WAITING = 200
"""Checks that wait for their turn there, at most: a full lecture hall."""
LONGEST = 120.0
"""Seconds after which a check is ended, the start of its processes included."""
LEAVE = 5.0
"""Seconds for a process that was told to end."""
START = (
    "import sys; sys.path.insert(0, sys.argv[1])\n"
    "from transformer.checking.serving import main\n"
    "sys.path.pop(0); main()"
)
WINDOWS = "Code is checked on Linux and macOS only. On Windows use WSL."
CHECKS = Lane(AT_ONCE)
LIMITS = Limits()
"""What a piece of code may use, as on the command line."""


class CheckError(UserError):
    """Why there is no verdict; the message is one sentence."""


@dataclass(frozen=True)
class Asked:
    """What is to be checked."""

    code: str
    name: str
    kind: str = ""
    """Empty lets the check guess."""


class Judge:
    """A process that checks one after the other. It is started when it is first needed, and anew when it is gone."""

    def __init__(self) -> None:
        self.told_to_end = False
        self._process: subprocess.Popen[bytes] | None = None
        self._words = LastWords()

    def prepare(self) -> None:
        """Let it import PyTorch before it is asked, unless it failed the last time: then whoever asks tries again."""
        if self._process is None or not self._process.poll():
            self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Let it import PyTorch, unless it has. Raises OSError where no process can be made."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            command = [sys.executable, "-P", "-c", START, str(Path(transformer.__file__).parents[1])]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            self._words = listen(self._process)
        return self._process

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Its answer. Raises OSError or ValueError where it ended before."""
        process = self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
        return record(process.stdout.readline(MOST_WORDS))

    def how_it_ended(self) -> str:
        """How it ended before it answered, in words to stand in a sentence."""
        code = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(LEAVE)
        return self._words.of(code)

    def end(self) -> None:
        """Tell it to end, with whatever it runs; it does so within moments."""
        self.told_to_end = True
        if self._process is not None:
            self._process.terminate()

    def close(self) -> None:
        """End it, and wait until it is gone."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(LEAVE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # a job that it never read
                pipe.close()  # type: ignore[union-attr]
        self._process, self.told_to_end = None, False


_line: list[Check] = []
"""The checks that are not over, in the order in which they were asked for."""
_spare: list[Judge] = []
_ordering = Lock()


class Check:
    """One check of one piece of code. Only its session holds it."""

    def __init__(self, asked: Asked, *, guarded: bool) -> None:
        self.asked = asked
        self.begun: float | None = None
        """When its turn came."""
        self.stopped = False
        self._guarded = guarded
        self._late = False
        self._judge: Judge | None = None
        self._lock = Lock()
        with _ordering:
            if len(_line) >= MOST_WAITING + AT_ONCE:
                raise CheckError(f"{MOST_WAITING} checks wait on this server already: try again in a while")
            _line.append(self)
        self._future: Future[Explained] = CHECKS.submit(self._run)
        self._future.add_done_callback(self._leave)

    @property
    def over(self) -> bool:
        """Is there a verdict, or will there be none?"""
        return self.stopped or self._future.done()

    @property
    def ahead(self) -> int:
        """How many checks come first; 0 once its turn has come."""
        with _ordering:
            return _line.index(self) if self.begun is None and self in _line else 0

    @property
    def seconds(self) -> float:
        """Since its turn came."""
        return 0.0 if self.begun is None else time.monotonic() - self.begun

    @property
    def problem(self) -> str:
        """Why there is no verdict, if there is none and it was not stopped."""
        return "" if self.stopped else background.problem(self._future)

    @property
    def verdict(self) -> Explained | None:
        """What was found."""
        return self._future.result() if self.over and not self.stopped and not self.problem else None

    def stop(self) -> None:
        """Break it off, with whatever it runs."""
        with self._lock:
            self.stopped = True
            self._future.cancel()
            if self._judge is not None:
                self._judge.end()

    def _end_late(self) -> None:
        with self._lock:
            if self._judge is not None:
                self._late = True
                self._judge.end()

    def _leave(self, _: object) -> None:
        with _ordering:
            _line.remove(self)

    def _run(self) -> Explained:
        with _ordering:
            judge = _spare.pop() if _spare else Judge()
        with self._lock:
            self._judge = judge
            self.begun = time.monotonic()
        late = Timer(LONGEST, self._end_late)
        late.daemon = True
        late.start()
        job = {
            **dataclasses.asdict(self.asked),
            "limits": dataclasses.asdict(LIMITS),
            "required": PROMISES if self._guarded else (),
        }
        try:
            if self.stopped:
                raise CheckError("it was stopped")
            said = judge.ask(job)
        except (OSError, ValueError):
            if self._late:
                raise CheckError(f"The check was broken off: it took longer than {LONGEST:g} s") from None
            how = judge.how_it_ended()
            raise CheckError(f"The check was broken off: the process that checks has ended, {how}") from None
        finally:
            late.cancel()
            with self._lock:
                self._judge = None
            if judge.told_to_end:
                judge.close()
            with _ordering:
                _spare.append(judge)
        if "problem" in said:
            raise CheckError(said["problem"])
        return explained(said)


def barred() -> str:
    """Why nothing is checked here for this session."""
    return permission.to_run_code() or ("" if can_isolate() else WINDOWS)


def begin(asked: Asked) -> Check:
    """Check something, when it is its turn. Raises Refused where this session may not, and CheckError.

    Where it is not the owner's, it runs only if all of PROMISES hold: it could read what opens the server else.
    """
    permission.require(barred())
    guarded = permission.visitor().role != "owner"
    if guarded and can_read(runs.ROOT):
        raise CheckError("the folder of runs lies where the code could read it, so visitors' code is not run here")
    return Check(asked, guarded=guarded)


def prepare() -> None:
    """Let a process import PyTorch before the first check is asked for, unless one has just failed to."""
    with _ordering:
        if not _spare and not _line:
            _spare.append(Judge())
        for judge in _spare[-1:]:
            with contextlib.suppress(OSError):  # whoever checks is told
                judge.prepare()


def close() -> None:
    """End every process that waits for a check."""
    with _ordering:
        spare, _spare[:] = list(_spare), []
    for judge in spare:
        judge.close()
