"""Warm workers, few of them, and a queue before them: a click never waits for an import, and a machine never drowns.

The queue is fair between people: whoever has the fewest trainings before one's own, under way or waiting, is next.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer.foundation.words import counted
from transformer.training.runs import Run, RunError

TICK = 5.0
"""Seconds between two looks at the workers when nothing has happened; a waiting run beats as often."""
MOST_WAITING = 100
"""Trainings that may wait for their turn."""
LONGEST = 900.0
"""Seconds for which a training may go on that is not the owner's, whose name is empty."""
SPARE = 6
"""Processes beyond those at work: the warm one, and paused trainings, of which one keeps its process for a while."""
SHORT = 3.0
"""Seconds of training after which another spare is made: a short training gives its own worker back before."""


def limit() -> int:
    """How many trainings run side by side: half the cores, two at least, eight at most."""
    return min(8, max(2, (os.cpu_count() or 1) // 2))


@dataclass(frozen=True)
class Waiting:
    """A run in the queue, and whose it is: any name, the same for all of one person's."""

    run: Run
    who: str = ""


def in_turn(waiting: Sequence[Waiting], at_work: Mapping[str, int]) -> list[Waiting]:
    """The order in which runs are trained that came in the order of `waiting`.

    A run's turn is the number of its owner's trainings before it, those `at_work` included; equal turns go by arrival.
    """
    turns, seen = [], Counter(at_work)
    for each in waiting:
        turns.append(seen[each.who])
        seen[each.who] += 1
    return [waiting[place] for place in sorted(range(len(waiting)), key=turns.__getitem__)]


class Worker:
    """One process that trains one run at a time; `changed` is called when it is ready, done, or dead.

    Of all workers that share a folder, `most` are at work at once.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None, shared: tuple[Path, int] | None = None) -> None:
        limits = [] if shared is None else [str(shared[0]), str(shared[1])]
        self.who = ""
        self.process = subprocess.Popen(
            # -P: not a transformer.py of the folder that the dashboard was started in
            [sys.executable, "-P", "-m", "transformer.training.queue.worker", *limits],
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
        run = self.run  # which may end at any moment
        return run is not None and run.state.status != "paused"

    def train(self, run: Run, who: str = "") -> None:
        """Hand over a run; it is trained to its end, whoever leaves. Raises OSError if the process is dead."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{run.folder}\n")
        self.process.stdin.flush()
        self.run, self.who, self.since = run, who, time.monotonic()

    def stop(self) -> None:
        """Let the training that it has end, if it has one."""
        run = self.run
        if run is not None:
            with contextlib.suppress(OSError):  # its folder is gone, or cannot be written
                run.request_stop()

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
    """The workers of a server: one warm spare, more when they are needed, never more than `most` at work.

    With a folder of runs, `root`, all servers that train in it share this limit.
    """

    def __init__(self, most: int | None = None, root: Path | None = None) -> None:
        self.most = most or limit()
        self.root = root
        self.workers: list[Worker] = []
        self.queue: list[Waiting] = []
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

    def submit(self, run: Run, who: str = "") -> None:
        """Train a run as soon as it is its turn. Raises RunError when it is queued already, or when too many are."""
        self.start()
        with self._news:
            if self._waiting(run):
                raise RunError(f"{run.name} is waiting for its turn already")
            if len(self.queue) >= MOST_WAITING:
                raise RunError(f"{counted(MOST_WAITING, 'training')} are waiting already: try again later")
            run.set_state("queued", run.state.step)
            self.queue.append(Waiting(run, who))
            self._serve()

    def withdraw(self, run: Run) -> bool:
        """Take a run out of the queue; False when it is not there any more."""
        with self._news:
            if (found := self._waiting(run)) is None:
                return False
            self.queue.remove(found)
        run.set_state("stopped", run.state.step, "taken out of the queue before its turn")
        return True

    def place(self, run: Run) -> tuple[int, int]:
        """Which one of how many in the queue a run is, as things stand now; (0, how many) where it is none of them."""
        with self._news:
            order = [each.run for each in in_turn(self.queue, self._at_work())]
        return (order.index(run) + 1 if run in order else 0), len(order)

    def live(self, who: str) -> int:
        """How many trainings of somebody are waiting or under way here."""
        with self._news:
            return sum(each.who == who for each in self.queue) + sum(
                worker.run is not None and worker.who == who for worker in self.workers
            )

    def close(self) -> None:
        """End the spares and the queue. Trainings that have begun go on: they belong to their folders."""
        with self._news:
            self._open = False
            waiting, self.queue = self.queue, []
            for worker in self.workers:
                worker.dismiss()
            self.workers = []
            self._news.notify_all()
        for each in waiting:
            each.run.set_state("stopped", each.run.state.step, "the dashboard was closed before its turn")

    def _mind(self) -> None:
        while True:
            with self._news:
                if not self._open:
                    return
                self._serve()
                for each in self.queue:
                    with contextlib.suppress(OSError):
                        each.run.set_state("queued", each.run.state.step)
                self._news.wait(SHORT if self._short() else TICK)

    def _changed(self) -> None:
        with self._news:
            self._news.notify_all()

    def _serve(self) -> None:
        """Give waiting runs to idle workers, and see to it that there is a spare."""
        self.workers = [worker for worker in self.workers if worker.alive]
        while self.queue and sum(worker.busy for worker in self.workers) < self.most:
            if (worker := self._idle()) is None and len(self.workers) >= self.most + SPARE:
                self._end_a_pause()
                break
            worker = worker or self._spawn()
            first = in_turn(self.queue, self._at_work())[0]
            try:
                worker.train(first.run, first.who)
            except OSError:  # it died a moment ago
                self.workers.remove(worker)
            else:
                self.queue.remove(first)
        if self._idle() is None and not self._short() and len(self.workers) < self.most + SPARE:
            self._spawn()
        for worker in self.workers:
            if worker.who and time.monotonic() - worker.since > LONGEST:
                worker.stop()

    def _end_a_pause(self) -> None:
        """Let the longest paused training give its process back; it can be resumed from its folder. Not the owner's."""
        paused = [worker for worker in self.workers if worker.who and worker.run is not None and not worker.busy]
        if paused:
            min(paused, key=lambda worker: worker.since).stop()

    def _waiting(self, run: Run) -> Waiting | None:
        """A run's entry in the queue."""
        return next((each for each in self.queue if each.run == run), None)

    def _at_work(self) -> Counter[str]:
        """How many trainings of whom take steps."""
        return Counter(worker.who for worker in self.workers if worker.busy)

    def _idle(self) -> Worker | None:
        """A worker without a run, a warm one first."""
        idle = [worker for worker in self.workers if worker.run is None]
        return max(idle, key=lambda worker: worker.ready.is_set(), default=None)

    def _short(self) -> bool:
        """Has a training begun just now, which may soon give its worker back?"""
        return any(worker.run is not None and time.monotonic() - worker.since < SHORT for worker in self.workers)

    def _spawn(self) -> Worker:
        worker = Worker(self._changed, None if self.root is None else (self.root, self.most))
        self.workers.append(worker)
        return worker
