"""Settings of a small run, a folder of runs, the files of one, what a run comes to, and one that is played."""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.kit.waiting import wait_for
from transformer import checkpoints
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import build
from transformer.training import lock
from transformer.training.exchange import archive
from transformer.training.listing import list_runs
from transformer.training.runs import Run, State

TINY = ModelConfig(n_layers=1, n_heads=2, d_model=16, d_ff=0)


def reached(run: Run, status: str = "", past: int = -1) -> State:
    """The state of a run once it has this status, or any, and has taken a step `past` this one."""
    what = f"{run.name} is {status or 'trained'}, past step {past}"
    return wait_for(what, lambda: run.state, lambda state: status in ("", state.status) and state.step > past)


def looked_after(run: Run) -> None:
    """Wait until whoever is at a run has looked at what it is asked for, and let others see: two signs of life on."""
    for _ in range(2):
        before = run.state.heartbeat
        wait_for(f"a sign of life of {run.name}", lambda: run.state, lambda state, last=before: state.heartbeat > last)


HANGS = 60.0
"""Seconds after which a reader is taken to wait for ever; each takes less than one."""


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Interrupt what waits for ever. Raises TimeoutError then."""

    def interrupt(*_: object) -> None:
        raise TimeoutError("it waits for what never comes")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, HANGS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def untrained(folder: Path, config: RunConfig, status: str = "finished") -> Run:
    """A run of one snapshot, the weights that a training would start from."""
    run = Run.create(folder, config)
    checkpoints.save(folder / "snapshots" / "step-000000.safetensors", build(config), config)
    run.set_state(status, 0, "" if status == "finished" else "it was cut off")
    return run


def tiny(**training) -> RunConfig:
    return RunConfig(task=TaskConfig(length=3), model=TINY, training=TrainingConfig(**{"max_steps": 4, **training}))


def names(root: Path) -> list[str]:
    return sorted(run.name for run in list_runs(root))


def digests(run: Run) -> dict[str, str]:
    """Every file that belongs to the run, by its SHA-256."""
    files = {path.relative_to(run.folder).as_posix(): path for path in run.folder.rglob("*") if path.is_file()}
    own = {name: path for name, path in files.items() if name in archive.NAMES or archive.SNAPSHOT.fullmatch(name)}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in own.items()}


class Played:
    """A training that a test plays: it holds the lock of its folder, and writes what is seen of it."""

    def __init__(self, run: Run, leave: Callable[[], None]) -> None:
        self.run, self.steps, self._leave = run, 0, leave

    def step(self) -> int:
        """Take one, and say so; which it was."""
        self.steps += 1
        line = {"step": self.steps, "loss": 2.0, "learning_rate": 0.001, "gradient_norm": 1.0, "seconds": 0.1}
        with (self.run.folder / "metrics.jsonl").open("a") as lines:
            lines.write(f"{json.dumps(line)}\n")
        self.say("running")
        return self.steps

    def say(self, status: str) -> None:
        self.run.set_state(status, self.steps)

    def end(self) -> None:
        """Be stopped by hand, without a film."""
        self.say("stopped")
        self._leave()


@contextlib.contextmanager
def playing(folder: Path) -> Iterator[Played]:
    """A training in a new folder, after its first step; it is stopped at last."""
    run = Run.create(folder, tiny(max_steps=1000))
    with contextlib.ExitStack() as process:
        process.enter_context(lock.hold(run.folder))
        training = Played(run, process.close)
        training.step()
        yield training
        training.end()
