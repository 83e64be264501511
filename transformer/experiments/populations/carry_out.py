"""Training a population: models of one shape as one batch, or one by one in a few processes.

Every member is a run folder below the sweep's. What has ended is not trained again, and what was cut off goes on from
where it was written down last.
"""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from transformer.experiments.populations.member import Recorder
from transformer.experiments.populations.plan import FILE, Member, Sweep, SweepError
from transformer.experiments.populations.table import Population, Row, write_table
from transformer.experiments.populations.together import Together, shape_of, why_alone
from transformer.experiments.side_by_side import side_by_side
from transformer.foundation.atomic_files import sweep as sweep_up
from transformer.foundation.checks import reason
from transformer.training import lock
from transformer.training.loop import Step, Training, TrainingError
from transformer.training.recording import SAVE_EVERY, SHARE, details
from transformer.training.runs import Run

MOST_TOGETHER = 64
"""Models in one batch."""
TABLE_EVERY = 1.0
"""Seconds between two writings of the table: that of thousands of members takes a while."""
Carrier = Callable[[Sequence[Path]], Iterator[Row]]
"""Trains the members of these run folders, and yields their rows in whatever order they end."""


def begin(sweep: Sweep, folder: Path) -> None:
    """Make a sweep's folder, or see that it is this one's. Raises SweepError when it is another's, and OSError."""
    if (folder / FILE).exists():
        if Sweep.load(folder) != sweep:
            raise SweepError(f"there is another sweep in {folder.name} already: choose another folder")
        return
    folder.mkdir(parents=True, exist_ok=True)
    sweep.save(folder)


def carry_out(sweep: Sweep, folder: Path, carrier: Carrier) -> Iterator[Population]:
    """Train what has not ended yet; what is yielded grows by a row at a time, the table in the folder every second.

    A row that the table has not yet lies in its member's folder, where `Population.load` finds it. Raises SweepError
    when the folder holds another sweep, and RunError or OSError when it cannot be written.
    """
    begin(sweep, folder)
    sweep_up(folder)
    found = Population.load(folder)
    rows = {name: row for name, row in found.rows.items() if row.status == "finished"}
    left: list[Path] = []
    for member in sweep.members():
        if member.config is None:
            rows[member.name] = Row.failed(member.name, 0, member.problem)
        elif member.name not in rows:
            left.append(_prepared(member, folder))

    write_table(folder, sweep, rows.values())
    grown = Population(folder.name, sweep, rows)
    yield grown
    written = time.monotonic()
    try:
        for row in carrier(left):
            rows[row.member] = row
            if time.monotonic() - written >= TABLE_EVERY:
                write_table(folder, sweep, rows.values())
                written = time.monotonic()
            yield grown
    finally:
        write_table(folder, sweep, rows.values())


def _prepared(member: Member, folder: Path) -> Path:
    """A member's run folder, made where there is none."""
    assert member.config is not None
    own = folder / member.name
    if not (own / "run.json").exists():
        Run.create(own, member.config, **details(torch.device("cpu")))
    return own


def in_batches(folders: Sequence[Path], device: torch.device, most: int = MOST_TOGETHER) -> Iterator[Row]:
    """Train models of one shape together, the others one by one, all in this process."""
    alike: dict[object, list[Path]] = defaultdict(list)
    for folder in folders:
        config = Run(folder).config
        alike[folder if why_alone(config) else shape_of(config)].append(folder)
    for group in alike.values():
        for first in range(0, len(group), most):
            yield from train(group[first : first + most], device)


def one_by_one(folders: Sequence[Path], processes: int) -> Iterator[Row]:
    """Train the members one by one, so many at a time, each in a process of a pool. Raises ProcessGone."""
    for rows in side_by_side(train_one, folders, processes, order=False):
        yield from rows


def train_one(folder: Path) -> list[Row]:
    """Train one member in this process, on the device that its config names."""
    from transformer.training.device import resolve_device

    config = Run(folder).config
    return list(train([folder], resolve_device(config.training.device, config)))


class Alone:
    """A training by itself, with the words of `Together`."""

    def __init__(self, training: Training) -> None:
        self.members = [training]

    def take_steps(self, most: int) -> dict[Training, list[Step | TrainingError]]:
        """Its next steps, and last, where it cannot go on, why."""
        training = self.members[0]
        found: list[Step | TrainingError] = []
        try:
            for step in training.take_steps(most):
                found.append(step)
        except TrainingError as error:
            found.append(error)
        if training.done or isinstance(found[-1], TrainingError):
            self.members = []
        return {training: found}

    def settle(self, member: Training) -> None:
        """Its model has its weights at all times."""


def train(folders: Sequence[Path], device: torch.device) -> Iterator[Row]:
    """Train the members of these run folders to their ends, as one batch where they are several; a row as each ends.

    They are of one shape (`together.shape_of`). One that somebody else is at work on is left out. Who stops asking for
    rows loses no step; an interruption within a step loses those since all was written down last.
    """
    with contextlib.ExitStack() as stack:
        recorders: dict[Training, Recorder] = {}
        for folder in folders:
            try:
                stack.enter_context(lock.hold(folder))
                recorder = Recorder(Run(folder), device)
            except lock.Occupied:
                continue
            except (ValueError, OSError, RuntimeError) as error:
                yield Row.failed(folder.name, 0, reason(error))
                continue
            if recorder.training.done:  # cut off after its last step
                yield recorder.end()
            else:
                recorders[recorder.training] = recorder
        try:
            by_step = defaultdict(list)  # what was cut off may have been written down at different steps
            for training in recorders:
                by_step[training.step].append(training)
            for group in by_step.values():
                yield from _train(Alone(group[0]) if len(group) == 1 else Together(group), recorders)
        finally:
            for recorder in recorders.values():
                recorder.leave()


def _train(batch: Alone | Together, recorders: dict[Training, Recorder]) -> Iterator[Row]:
    """Take steps until all members have ended; who has is taken out of the recorders."""
    pace = _Pace()
    while batch.members:
        found = batch.take_steps(min(recorders[training].steps_to_frame for training in batch.members))
        for training, steps in found.items():
            for step in steps:
                if isinstance(step, Step):
                    recorders[training].add(step)
        writes = pace.due()
        for training in batch.members:  # who goes on
            recorder = recorders[training]
            if recorder.films or writes:
                batch.settle(training)
            if recorder.films:
                recorder.look()
            if writes:
                recorder.keep()
        pace.wrote(writes)
        try:
            for training, steps in found.items():
                if isinstance(steps[-1], TrainingError):
                    yield recorders.pop(training).fail(str(steps[-1]))
                elif training.done:
                    yield recorders.pop(training).end()
        except GeneratorExit:  # between two steps: nothing of them is lost
            for training in found:
                if training in recorders:
                    batch.settle(training)
                    recorders[training].keep()
            raise


@dataclass
class _Pace:
    """How often all is written down: every few seconds, and never so often that writing takes more than a fiftieth."""

    pause: float = SAVE_EVERY
    since: float = 0.0
    began: float = 0.0

    def __post_init__(self) -> None:
        self.since = time.monotonic()

    def due(self) -> bool:
        self.began = time.monotonic()
        return self.began - self.since >= self.pause

    def wrote(self, was_due: bool) -> None:
        """Called after the writing, if it was due."""
        if was_due:
            self.since = time.monotonic()
            self.pause = max(SAVE_EVERY, SHARE * (self.since - self.began))
