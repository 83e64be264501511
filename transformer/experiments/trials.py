"""Many small trainings one after the other, or side by side, into one file.

It is written after every training, so that whoever looks sees how far it is, and what is cut off is not lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from transformer.experiments.side_by_side import side_by_side


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

    Raises what `try_out` raises, ProcessGone, and OSError when the file cannot be written.
    """
    found = empty
    found.save(path)
    done = side_by_side(try_out, jobs, processes, order=True) if processes > 1 else map(try_out, jobs)
    for trial in done:
        found = found.with_trial(trial)
        found.save(path)
        yield found
