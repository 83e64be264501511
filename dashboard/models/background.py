"""Work behind a page, so that clicks go on meanwhile: in threads of this process, or in a process of its own."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

from dashboard.models.progress import stamp
from transformer.foundation import gpus
from transformer.foundation.interruption import interruptible
from transformer.foundation.last_words import LastWords, listen

P = ParamSpec("P")
T = TypeVar("T")
AT_ONCE = 0.4
"""Seconds for which a page waits for a measurement; what takes longer is shown when it is there, and clicks go on."""
UNWANTED = 10.0
"""Seconds without a look from any page after which work is given up. A page that is drawn anew may take some."""


# --- in threads: the one executor of the dashboard


class Lane:
    """A lane of the executor: so many pieces of its work go on at a time, the others wait in order.

    Work of one lane never waits for that of another. Its threads are daemons: a server that is stopped waits for none.
    """

    def __init__(self, most: float = math.inf) -> None:
        self._most = most
        self._going = 0
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._lock = threading.Lock()

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Begin with this work when it is its turn; until then its future can be cancelled."""
        future: Future[T] = Future()
        with self._lock:
            self._waiting.append((future, partial(work, *args, **kwargs)))
            if self._going < self._most:
                self._going += 1
                threading.Thread(target=self._go_on, name="behind a page", daemon=True).start()
        return future

    def _go_on(self) -> None:
        """Do what waits, one after the other, until nothing does."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._going -= 1
                    return
                future, work = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:  # whoever asks for the result is told
                    future.set_exception(error)


MEASUREMENTS = Lane(2)
"""What is measured of a model. Two at a time: a long one keeps no short one waiting, and more would slow each other."""
TRAININGS = Lane(1)
"""What is trained for longer than a moment. One at a time: two would share a processor, and both come later."""
LESSONS = Lane(2)
"""What is trained in a few seconds. A slider that is dragged asks for many, and no measurement is to wait for those."""
WATCHED = Lane()
"""What begins at once, for somebody looks on: a training at the eye's pace, a text that is written, a download."""


def ready(future: Future[T]) -> T | None:
    """What was worked out, if it is there or comes within AT_ONCE. Raises what the work raised."""
    wait([future], AT_ONCE)
    return future.result() if future.done() else None


class Wanted(Generic[T]):
    """Work that pages wait for. It begins at once, and is given up when no page has looked after it for UNWANTED."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._looked = time.monotonic()
        self.future = WATCHED.submit(self._do, work)

    def done(self, seconds: float) -> bool:
        """Is it done, or given up, within so many seconds? Who asks wants it."""
        self._looked = time.monotonic()
        wait([self.future], seconds)
        return self.future.done()

    def _do(self, work: Callable[[], T]) -> T:
        with interruptible(lambda: time.monotonic() - self._looked < UNWANTED):
            return work()


def problem(future: Future[Any] | None) -> str:
    """Why work broke off, in words; nothing where it did not, or has not yet."""
    if future is None or not future.done() or future.cancelled():
        return ""
    error = future.exception()
    return "" if error is None else str(error) or type(error).__name__


# --- in a process of its own: what takes longer than anybody waits


class Measuring:
    """The one process that measures; it belongs to the server, and its file says how far it is.

    `command` is one of `python -m transformer`, which takes the file as its --out. Where that file `grows`, an older
    one goes when it begins; else it stands until it is replaced.
    """

    def __init__(self, command: str, *, grows: bool = True) -> None:
        self._command, self._grows = command, grows
        self.path: Path | None = None
        """What it writes, or wrote last."""
        self.stopped = False
        """Was the last one ended by `stop`?"""
        self._process: subprocess.Popen[bytes] | None = None
        self._words = LastWords()
        self._lock = threading.Lock()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def progress(self) -> tuple[object, ...]:
        """How far it is: another value whenever it has written something, begun or ended."""
        return self.running, self.path, stamp(self.path) if self.path else ()

    @property
    def failed(self) -> bool:
        """Did the last one end before its time?"""
        return self._process is not None and self._process.poll() not in (None, 0)

    @property
    def why(self) -> str:
        """ ": its last words were …" where the last one ended before its time and by no button, to end a sentence."""
        if self._process is None or self.stopped or not self.failed:
            return ""
        return f": {self._words.of(self._process.poll())}"

    def start(self, path: Path, *options: str) -> None:
        """Begin, unless one is at it. Raises OSError when no process can be made."""
        with self._lock:
            if self.running:
                return
            if self._grows:
                path.unlink(missing_ok=True)
            self.path, self.stopped = path, False
            command = [sys.executable, "-P", "-m", "transformer", self._command, "--out", str(path), *options]
            # Below everything else: whoever looks at a page comes first.
            nice = ["nice"] if os.name == "posix" else []
            self._process = subprocess.Popen(
                [*nice, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=gpus.environment()
            )
            self._words = listen(self._process)

    def stop(self) -> None:
        """End it; what it has measured stays."""
        with self._lock:
            if self._process is not None and self.running:
                self.stopped = True
                self._process.terminate()
                self._process.wait()
