"""The training process: it has already paid for importing PyTorch, and waits on its stdin for runs to train.

`python -m transformer.training.queue.worker [ROOT MOST]` prints READY, reads one run folder a line, and prints DONE
after each. It is ready once the CPU is warm; then it looks for GPUs, and prints FOUND with what there is to train on.
Where it ends by itself after a run, it prints LAST before DONE. Whatever else it prints is kept as its last words. Of
all processes that name the same ROOT at most MOST train at once. It is a plain subprocess: the children of
multiprocessing would run the Streamlit script again. When whoever started it goes away, it trains on to the end of its
run, for the run belongs to its folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from transformer.training import events
from transformer.training.devices.found import Devices
from transformer.training.queue.places import Places
from transformer.training.queue.pool import DONE, FOUND, LAST, READY
from transformer.training.runs import Run, RunError

TICK, BEAT = 0.1, 1.0
"""Seconds between two looks whether a place is free, and between two signs of life of the run that waits for it."""


def warm_up() -> None:
    """Pay for everything that is slow only once, on the CPU: PyTorch, and the first steps."""
    import torch

    torch.set_num_threads(1)  # toys: two threads lose everything to a busy neighbour
    _take_steps("cpu", 2)
    if events.installed():
        import tensorboard.summary.writer.record_writer  # noqa: F401


def _take_steps(device: str, most: int) -> None:
    """The first steps of the default run."""
    from transformer.config import RunConfig, TrainingConfig
    from transformer.model import build
    from transformer.training.loop import train

    config = RunConfig(training=TrainingConfig(max_steps=most, evaluate_every=1))
    for _ in train(build(config).to(device), config):
        pass


class Lookout:
    """What this process has found to train on, and tells whoever started it; the GPU that can be used it warms up."""

    def __init__(self) -> None:
        self.told: Devices | None = None
        self.failed = False
        """Did a GPU on which something could be computed fail at its first steps?"""
        self._work = self._in_pieces()

    def go_on(self, called: Callable[[], bool] = lambda: False) -> None:
        """Look for GPUs and warm one up, piece by piece, until all is done or this process is `called` away.

        Once that is done, look what there is now.
        """
        from transformer.training.device import short_reason, without_gpus

        try:
            while not called():
                if next(self._work, None) is None:
                    self.look()
                    return
        except Exception as error:  # whatever a driver does: the CPU is warm, and trains
            if self.told is None:
                self._tell(without_gpus(short_reason(error)))

    def look(self) -> Devices:
        """What there is to train on now; it is told where it is news."""
        from transformer.training.device import look

        found = look()
        if found != self.told:
            self._tell(found)
        return found

    def _tell(self, found: Devices) -> None:
        self.told = found
        _say(FOUND + json.dumps(found.record()))

    @property
    def well(self) -> bool:
        """Can the GPU still be used that could be used before?"""
        if self.told is None or (before := self.told.gpu) is None:
            return not self.failed
        try:
            now = self.look().called(before.name)
        except Exception:  # each driver has its own
            return False
        return now is not None and not now.fault

    def _in_pieces(self) -> Iterator[bool]:
        from transformer.training.device import driver, give_up, short_reason
        from transformer.training.devices import step_times
        from transformer.training.stepping import WARM_UP

        devices = self.look()
        yield True
        if (gpu := devices.gpu) is None:
            return
        try:
            _take_steps(gpu.name, WARM_UP + 2)
            yield True
            if not gpu.milliseconds:
                there = step_times.measure(gpu.name)
                yield True
                times = devices.with_values(gpu, milliseconds=there)
                times = times.with_values(devices.all[0], milliseconds=step_times.measure("cpu"))
                step_times.remember(times, driver())
        except Exception as error:  # each driver has its own
            self.failed = True
            give_up(gpu, short_reason(error))


def main() -> None:
    warm_up()
    from transformer.training.recording import develop, record
    from transformer.training.stepping import UNCAPTURED

    places = Places(Path(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) == 3 else None
    films: list[Run] = []
    lookout = Lookout()
    _say(READY)
    lookout.go_on(_called)
    for line in _lines():
        run = Run(Path(line))
        with contextlib.suppress(Exception):  # the run folder has the reason
            if run.config.training.device != "cpu":
                lookout.go_on()
            if places is None or _its_turn(run, places):
                for _ in record(run, places=places):
                    pass
        if places is not None:
            places.give()
        films.append(run)
        # A CUDA context that broke stays broken, and a capture that failed may let the next one fail: a fresh process.
        last = not lookout.well or _stepping(run).startswith(UNCAPTURED)
        if last:
            _say(LAST)
        _say(DONE)
        if last:
            break
        lookout.go_on(_called)
        while films and not _called():
            with contextlib.suppress(Exception):
                if not develop(films[0], _called):
                    break
            films.pop(0)
    for run in films:
        with contextlib.suppress(Exception):
            develop(run)


def _stepping(run: Run) -> str:
    """How the steps of a run were taken; empty where its card does not say."""
    try:
        return str(run.card.get("stepping", ""))
    except RunError:
        return ""


def _its_turn(run: Run, places: Places) -> bool:
    """Wait until a place is free; False when the run is taken out of the queue, or taken up by others, before."""
    due = 0.0
    while not places.take():
        if run.control.stop:
            run.set_state("stopped", run.state.step, "taken out of the queue before its turn")
            return False
        if run.state.status not in ("queued", "lost"):
            return False
        if time.monotonic() >= due:
            run.set_state("queued", run.state.step)
            due = time.monotonic() + BEAT
        time.sleep(TICK)
    return True


def _say(word: str) -> None:
    """Tell whoever started this process, on a line of its own; it may be gone."""
    try:
        print(f"\n{word}", flush=True)
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        for each in (sys.stdout, sys.stderr):
            os.dup2(nothing, each.fileno())


def _lines() -> Iterator[str]:
    for line in sys.stdin:
        yield line.strip()


def _called() -> bool:
    """Is the next run waiting? Then a film can wait."""
    if os.name == "nt":
        return False
    return bool(select.select([sys.stdin], [], [], 0)[0])


if __name__ == "__main__":
    main()
