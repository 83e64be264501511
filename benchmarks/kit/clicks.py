"""Runs that are handed to a warm worker, and how long it is until a page can read what it did."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from transformer.config import RunConfig
from transformer.training.queue.pool import Worker
from transformer.training.runs import Run

PATIENCE = 120.0
"""Seconds after which what is waited for will not come."""


def with_seed(config: RunConfig, seed: int, device: str) -> RunConfig:
    return replace(config, training=replace(config.training, seed=seed, device=device))


@contextmanager
def warm_worker() -> Iterator[tuple[Worker, Path]]:
    """A worker that is ready, and a folder for its runs, which goes once the worker has ended.

    Its last word on a run is not its last file: after the step that solves it come weights, a measurement, a film.
    """
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker()
        try:
            wait(worker.ready.is_set)
            yield worker, Path(folder)
        finally:
            worker.dismiss()
            if not worker.ended.wait(PATIENCE):
                worker.process.kill()
                worker.ended.wait()


def wait(condition: Callable[[], bool]) -> float:
    """Seconds until it holds."""
    began = time.perf_counter()
    while not condition():
        if time.perf_counter() - began > PATIENCE:
            raise TimeoutError("it did not come to pass")
        time.sleep(0.001)
    return time.perf_counter() - began


def free(worker: Worker, config: RunConfig, folder: Path) -> Run:
    """Hand a run to the worker once it is free, and has made the film of the run before."""
    wait(lambda: worker.run is None)
    time.sleep(3)
    run = Run.create(folder / str(time.time_ns()), config)
    worker.train(run)
    return run


def after_the_click(worker: Worker, config: RunConfig, folder: Path) -> tuple[float, float]:
    """Seconds until the first step can be read, and until it is solved."""
    run = free(worker, config, folder)
    began = time.perf_counter()
    first = wait(lambda: bool(run.metrics()))
    wait(lambda: bool(run.metrics()[-1].get("solved")))
    return first, time.perf_counter() - began
