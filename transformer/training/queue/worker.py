"""The training process: it has already paid for importing PyTorch, and waits on its stdin for runs to train.

`python -m transformer.training.queue.worker [ROOT MOST]` prints READY, reads one run folder a line, and prints DONE
after each; whatever else it prints is kept as its last words. Of all processes that name the same ROOT at most MOST
train at once. It is a plain subprocess: the children of multiprocessing would run the Streamlit script again. When
whoever started it goes away, it trains on to the end of its run, for the run belongs to its folder.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from transformer.training import events
from transformer.training.queue.places import Places
from transformer.training.queue.pool import DONE, READY
from transformer.training.runs import Run

TICK, BEAT = 0.1, 1.0
"""Seconds between two looks whether a place is free, and between two signs of life of the run that waits for it."""


def warm_up() -> None:
    """Pay for everything that is slow only once: torch, torch._dynamo, the first steps, the CUDA context."""
    import torch
    import torch._dynamo  # imported lazily, at 1.2 s, by the first optimiser that steps

    from transformer.config import RunConfig, TrainingConfig
    from transformer.model import build
    from transformer.training.device import resolve_device
    from transformer.training.loop import train

    torch.set_num_threads(1)  # toys: two threads lose everything to a busy neighbour
    config = RunConfig(training=TrainingConfig(max_steps=2, evaluate_every=1))
    for _ in train(build(config).to(resolve_device()), config):
        pass
    if events.installed():
        import tensorboard.summary.writer.record_writer  # noqa: F401


def main() -> None:
    warm_up()
    from transformer.training.recording import develop, record

    places = Places(Path(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) == 3 else None
    films: list[Run] = []
    _say(READY)
    for line in _lines():
        run = Run(Path(line))
        with contextlib.suppress(Exception):  # the run folder has the reason
            if places is None or _its_turn(run, places):
                for _ in record(run, places=places):
                    pass
        if places is not None:
            places.give()
        films.append(run)
        _say(DONE)
        while films and not _called():
            with contextlib.suppress(Exception):
                if not develop(films[0], _called):
                    break
            films.pop(0)
    for run in films:
        with contextlib.suppress(Exception):
            develop(run)


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
