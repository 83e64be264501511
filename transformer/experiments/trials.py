"""Many small trainings one after the other, or side by side, into one file.

It is written after every training, so that whoever looks sees how far it is, and what is cut off is not lost.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch


@runtime_checkable
class Measurement(Protocol):
    """What grows by a trial at a time."""

    def with_trial(self, trial: Any) -> Any: ...

    def save(self, path: Path) -> None: ...


Growing = TypeVar("Growing", bound=Measurement)
Job = TypeVar("Job")


def carry_out_trials(
    empty: Growing, jobs: Sequence[Job], try_out: Callable[[Job], object], path: Path, processes: int = 1
) -> Iterator[Growing]:
    """Try out each job; the file and what is yielded grow from `empty`, in the order of the jobs always.

    Raises what `try_out` raises, and OSError when the file cannot be written.
    """
    found = empty
    found.save(path)
    with contextlib.ExitStack() as stack:
        done: Iterable[object] = map(try_out, jobs)
        if processes > 1:
            # Of a pool's workers none outlives whoever made it, even where that is killed: they read from its pipe.
            pool = get_context("spawn").Pool(processes, torch.set_num_threads, (1,))
            done = stack.enter_context(pool).imap(try_out, jobs)
        for trial in done:
            found = found.with_trial(trial)
            found.save(path)
            yield found
