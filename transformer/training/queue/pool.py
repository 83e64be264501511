"""Warm workers, few of them, and a queue before them: a click never waits for an import, and a machine never drowns.

The queue is fair between people: whoever has the fewest trainings before one's own, under way or waiting, is next.
Where processes end before they can train, the next is started after a pause, each longer than the one before, and who
waits is told their last words.
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
from functools import partial
from pathlib import Path

from transformer.foundation import gpus
from transformer.foundation.checks import reason
from transformer.foundation.foreign import record
from transformer.foundation.last_words import LastWords
from transformer.foundation.words import counted
from transformer.training.devices.found import Devices
from transformer.training.queue import warm_ups
from transformer.training.runs import Run, RunError

READY, DONE, LAST, FOUND = "\x02ready", "\x02done", "\x02last", "\x02found "
"""What a worker says to whoever started it: lines that nothing else prints. Behind FOUND stand its devices, as JSON."""
LONGEST_FOUND = 2**16
"""Characters of a line in which a worker tells what there is to train on."""
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
ENOUGH = 3
"""Processes in a row that ended before they could train, after which it is said, and the next one waits."""
PAUSE, LONGEST_PAUSE = 5.0, 60.0
"""Seconds until the next one then, twice as many each time, and the most."""
STEADY = 60.0
"""Seconds of life after which a warm process has shown that the next one can start, too."""
UNREAD = 1.0
"""Seconds in which the last words of a dead process are read; a child of its own may keep its pipe open."""


def limit() -> int:
    """How many trainings run side by side: half the cores, two at least, eight at most."""
    return min(8, max(2, (os.cpu_count() or 1) // 2))


@dataclass(frozen=True)
class Waiting:
    """A run in the queue, and whose it is: any name, the same for all of one person's."""

    run: Run
    who: str = ""
    tries: int = 0
    """Processes that have ended with it before they began."""


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
    """One process that trains one run at a time; `changed` is called when it is ready, done, dead, or found devices.

    Of all workers that share a folder, `most` are at work at once. Raises OSError where no process can be made.
    """

    def __init__(
        self, changed: Callable[[Worker], None] = lambda worker: None, shared: tuple[Path, int] | None = None
    ) -> None:
        limits = [] if shared is None else [str(shared[0]), str(shared[1])]
        self.who = ""
        self.words = LastWords()
        self.process = subprocess.Popen(
            # -P: not a transformer.py of the folder that the dashboard was started in
            [sys.executable, "-P", "-m", "transformer.training.queue.worker", *limits],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            encoding="utf-8",
            errors="replace",
            env=gpus.environment(),
        )
        self.run: Run | None = None
        self.tries = 0
        self.served = False
        """Has it come to the end of a run?"""
        self.born = self.since = time.monotonic()
        self.devices: Devices | None = None
        """What it has found to train on; None until it has looked."""
        self.last = False
        """Will it end by itself after the run that it has?"""
        self.ready = threading.Event()
        self.ended = threading.Event()
        self._dead_since: float | None = None
        self._changed = changed
        threading.Thread(target=self._listen, name="worker", daemon=True).start()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def gone(self) -> bool:
        """Is it dead, and have its last words been read?"""
        if self.alive:
            return False
        self._dead_since = self._dead_since or time.monotonic()
        return self.ended.is_set() or time.monotonic() - self._dead_since > UNREAD

    @property
    def steady(self) -> bool:
        """Has it shown that a process can start here, and train?"""
        return self.served or (self.ready.is_set() and self.alive and time.monotonic() - self.born > STEADY)

    @property
    def busy(self) -> bool:
        """Is it taking steps? A paused training keeps its process, but not a place in the queue."""
        run = self.run  # which may end at any moment
        return run is not None and run.state.status != "paused"

    def train(self, run: Run, who: str = "") -> None:
        """Hand over a run; it is trained to its end, whoever leaves. Raises OSError if the process is dead."""
        assert self.process.stdin is not None
        self.run, self.who, self.since = run, who, time.monotonic()  # first: its end may be heard before the next line
        try:
            self.process.stdin.write(f"{run.folder}\n")
            self.process.stdin.flush()
        except (OSError, ValueError):
            self.run = None
            raise

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
            for line in iter(partial(words.readline, LONGEST_FOUND), ""):
                word = line.strip()
                if word == READY:
                    self.ready.set()
                    warm_ups.remember(time.monotonic() - self.born)
                elif word == DONE:
                    self.run, self.served = None, True
                elif word == LAST:
                    self.last = True
                elif word.startswith(FOUND):
                    with contextlib.suppress(ValueError):
                        self.devices = Devices.read(record(word.removeprefix(FOUND)))
                else:
                    self.words.add(line)
                    continue
                self._changed(self)
        self.process.wait()  # nobody else takes leave of it
        self.dismiss()
        self.ended.set()
        self._changed(self)


class Pool:
    """The workers of a server: one warm spare, more when they are needed, never more than `most` at work.

    With a folder of runs, `root`, all servers that train in it share this limit.
    """

    def __init__(self, most: int | None = None, root: Path | None = None) -> None:
        self.most = most or limit()
        self.root = root
        self.workers: list[Worker] = []
        self.queue: list[Waiting] = []
        self.devices: Devices | None = None
        """What there is to train on, as a worker found it last; None until one has looked."""
        self._news = threading.Condition()
        self._open = False
        self._deaths, self._how = 0, ""
        """How many processes in a row ended before they could train, and how the last one did."""
        self._next = 0.0
        """When another process may be started, on the clock of time.monotonic."""

    def start(self) -> None:
        """Make the first spare, and mind the queue in the background."""
        with self._news:
            if self._open:
                return
            self._open = True
            self._serve()
        threading.Thread(target=self._mind, name="pool", daemon=True).start()

    def submit(self, run: Run, who: str = "") -> None:
        """Train a run as soon as it is its turn. Raises RunError when it is queued already, or when too many are."""
        with self._news:
            self.start()  # in the same turn: processes that end meanwhile, or a pool that closes, come before or after
            if self._waiting(run):
                raise RunError(f"{run.name} is waiting for its turn already")
            if len(self.queue) >= MOST_WAITING:
                raise RunError(f"{counted(MOST_WAITING, 'training')} are waiting already: try again later")
            run.set_state("queued", run.state.step)
            self.queue.append(Waiting(run, who))
            self._next = 0.0  # whoever asks may have mended what was wrong
            self._serve()
            self._news.notify_all()

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

    def preparing(self, run: Run) -> bool:
        """Does a run wait for a process that is being made ready, and for nothing else?"""
        with self._news:
            first = in_turn(self.queue, self._at_work())[: max(0, self.most - self._busy())]
            return any(each.run == run for each in first)

    @property
    def trouble(self) -> str:
        """Why no training can begin, in one sentence; empty where one can, or where that is not known yet."""
        with self._news:
            return self._trouble()

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
                self._news.wait(self._patience())

    def _patience(self) -> float:
        """Seconds until something is due."""
        longest = SHORT if self._short() else TICK
        due = self._next - time.monotonic()
        return min(longest, due) if due > 0 else longest

    def _changed(self, worker: Worker) -> None:
        with self._news:
            self.devices = worker.devices or self.devices
            self._news.notify_all()

    def _serve(self) -> None:
        """Give waiting runs to warm workers, and see to it that there is a spare."""
        if any(worker.steady for worker in self.workers):
            self._deaths = 0
        self._bury()
        while self.queue and self._busy() < self.most and (worker := self._idle()) is not None:
            first = in_turn(self.queue, self._at_work())[0]
            try:
                worker.train(first.run, first.who)
            except (OSError, ValueError):  # it died a moment ago, and is buried once it has been heard
                worker.ready.clear()
            else:
                worker.tries = first.tries
                self.queue.remove(first)
        wanted = min(len(self.queue), max(0, self.most - self._busy()))
        if not wanted and self._idle() is None and not self._short():
            wanted = 1
        coming = sum(worker.run is None and not worker.ready.is_set() and not worker.last for worker in self.workers)
        if self.queue and coming < wanted and len(self.workers) >= self.most + SPARE:
            self._end_a_pause()
        for _ in range(min(1 if self._deaths else wanted, self.most + SPARE - len(self.workers)) - coming):
            if time.monotonic() >= self._next and self._open:
                self._spawn()
        for worker in self.workers:
            if worker.who and time.monotonic() - worker.since > LONGEST:
                worker.stop()

    def _bury(self) -> None:
        """Take leave of the workers that are dead: what one has not begun waits anew, what it has begun says why."""
        for worker in [each for each in self.workers if each.gone]:
            self.workers.remove(worker)
            how, run = worker.words.of(worker.process.returncode), worker.run
            if run is None:
                if not worker.served:
                    self._count_death(how, worker.words)
            elif run.state.status != "queued":
                if worker.words.lines and run.state.status == "lost":
                    _note(run, "lost", f"{run.state.reason}, and {how}")
            elif worker.tries + 1 < ENOUGH:
                self.queue.insert(0, Waiting(run, worker.who, worker.tries + 1))
            else:
                _note(run, "failed", f"its process ended {counted(ENOUGH, 'time')} before it began: {how}")

    def _count_death(self, how: str, words: LastWords) -> None:
        """Note how a process ended that had no run yet. Enough of them in a row fail who waits, and make a pause."""
        self._deaths, self._how = self._deaths + 1, how
        if self._deaths < ENOUGH:
            return
        self._next = time.monotonic() + min(LONGEST_PAUSE, PAUSE * 2.0 ** min(self._deaths - ENOUGH, 16))
        if not (why := self._trouble()):
            return
        if self._deaths == ENOUGH:  # whoever started the server is told all of it, once
            print(f"{why}.", *words.lines, sep="\n  ", file=sys.stderr, flush=True)
        waiting, self.queue = self.queue, []
        for each in waiting:
            _note(each.run, "failed", why)

    def _trouble(self) -> str:
        if self._deaths < ENOUGH or any(worker.ready.is_set() and worker.alive for worker in self.workers):
            return ""
        times = counted(self._deaths, "time")
        return f"no training can begin, because its process ended {times} in a row before it could train: {self._how}"

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

    def _busy(self) -> int:
        """How many trainings take steps."""
        return sum(worker.busy for worker in self.workers)

    def _idle(self) -> Worker | None:
        """A warm worker without a run."""
        warm = (worker for worker in self.workers if worker.ready.is_set() and worker.alive and not worker.last)
        return next((worker for worker in warm if worker.run is None), None)

    def _short(self) -> bool:
        """Has a training begun just now, which may soon give its worker back?"""
        return any(worker.run is not None and time.monotonic() - worker.since < SHORT for worker in self.workers)

    def _spawn(self) -> None:
        try:
            worker = Worker(self._changed, None if self.root is None else (self.root, self.most))
        except OSError as error:
            self._count_death(f"it could not be made ({reason(error)})", LastWords())
        else:
            self.workers.append(worker)


def _note(run: Run, status: str, why: str) -> None:
    """Write down where a run stands, if its folder can be written."""
    with contextlib.suppress(OSError):
        run.set_state(status, run.state.step, why)
