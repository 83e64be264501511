"""Warm workers, few of them, and a queue before them: a click never waits for an import, and a machine never drowns."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from transformer.training.runs import Run, RunError

TICK = 5.0
"""Seconds between two looks at the workers when nothing has happened; a waiting run beats as often."""
SHORT = 3.0
"""Seconds of training after which another spare is made: a short training gives its own worker back before."""


def limit() -> int:
    """How many trainings run side by side: half the cores, two at least, eight at most."""
    return min(8, max(2, (os.cpu_count() or 1) // 2))


class Worker:
    """One process that trains one run at a time; `changed` is called when it is ready, done, or dead."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "transformer.training.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )
        self.run: Run | None = None
        self.since = time.monotonic()
        self.ready = threading.Event()
        self.ended = threading.Event()
        self._changed = changed
        threading.Thread(target=self._listen, name="worker", daemon=True).start()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def busy(self) -> bool:
        """Is it taking steps? A paused training keeps its process, but not a place in the queue."""
        return self.run is not None and self.run.state.status != "paused"

    def train(self, run: Run) -> None:
        """Hand over a run; it is trained to its end, whoever leaves. Raises OSError if the process is dead."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{run.folder}\n")
        self.process.stdin.flush()
        self.run, self.since = run, time.monotonic()

    def dismiss(self) -> None:
        """Let it end: at once without a run, else after it."""
        with contextlib.suppress(OSError):
            if self.process.stdin is not None:
                self.process.stdin.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as words:
            for word in words:
                if word.strip() == "ready":
                    self.ready.set()
                elif word.strip() == "done":
                    self.run = None
                self._changed()
        self.process.wait()  # nobody else takes leave of it
        self.dismiss()
        self.ended.set()
        self._changed()


class Pool:
    """The workers of a server: one warm spare, more when they are needed, never more than `most` at work."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most or limit()
        self.workers: list[Worker] = []
        self.queue: deque[Run] = deque()
        self._news = threading.Condition()
        self._open = False

    def start(self) -> None:
        """Make the first spare, and mind the queue in the background."""
        with self._news:
            if self._open:
                return
            self._open = True
            self._spawn()
        threading.Thread(target=self._mind, name="pool", daemon=True).start()

    def submit(self, run: Run) -> None:
        """Train a run as soon as a place is free. Raises RunError when it is queued already."""
        self.start()
        with self._news:
            if run in self.queue:
                raise RunError(f"{run.name} is waiting for its turn already")
            run.set_state("queued", run.state.step)
            self.queue.append(run)
            self._serve()

    def withdraw(self, run: Run) -> bool:
        """Take a run out of the queue; False when it is not there any more."""
        with self._news:
            if run not in self.queue:
                return False
            self.queue.remove(run)
        run.set_state("stopped", run.state.step, "taken out of the queue before its turn")
        return True

    def close(self) -> None:
        """End the spares and the queue. Trainings that have begun go on: they belong to their folders."""
        with self._news:
            self._open = False
            waiting, self.queue = list(self.queue), deque()
            for worker in self.workers:
                worker.dismiss()
            self.workers = []
            self._news.notify_all()
        for run in waiting:
            run.set_state("stopped", run.state.step, "the dashboard was closed before its turn")

    def _mind(self) -> None:
        while True:
            with self._news:
                if not self._open:
                    return
                self._serve()
                for run in self.queue:
                    with contextlib.suppress(OSError):
                        run.set_state("queued", run.state.step)
                self._news.wait(SHORT if self._short() else TICK)

    def _changed(self) -> None:
        with self._news:
            self._news.notify_all()

    def _serve(self) -> None:
        """Give waiting runs to idle workers, and see to it that there is a spare."""
        self.workers = [worker for worker in self.workers if worker.alive]
        while self.queue and sum(worker.busy for worker in self.workers) < self.most:
            worker = self._idle() or self._spawn()
            run = self.queue.popleft()
            try:
                worker.train(run)
            except OSError:  # it died a moment ago
                self.workers.remove(worker)
                self.queue.appendleft(run)
        if self._idle() is None and not self._short():
            self._spawn()

    def _idle(self) -> Worker | None:
        """A worker without a run, a warm one first."""
        idle = [worker for worker in self.workers if worker.run is None]
        return max(idle, key=lambda worker: worker.ready.is_set(), default=None)

    def _short(self) -> bool:
        """Has a training begun just now, which may soon give its worker back?"""
        return any(worker.run is not None and time.monotonic() - worker.since < SHORT for worker in self.workers)

    def _spawn(self) -> Worker:
        worker = Worker(self._changed)
        self.workers.append(worker)
        return worker
