"""Work done side by side in a few processes, which says so when one of them is gone.

The pool of Python's library starts a process anew for each that ends, ten times a second where none can start, and
waits for ever for what the dead one was at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from multiprocessing import TimeoutError as NotYet
from multiprocessing import active_children, get_context
from typing import Any, TypeVar

import torch

from transformer.foundation.checks import UserError
from transformer.foundation.last_words import signal_name

Job = TypeVar("Job")
Result = TypeVar("Result")
LOOK = 0.5
"""Seconds between two looks whether all processes are there."""


class ProcessGone(UserError):
    """A process of those side by side has ended with its work undone; the message is one sentence."""


def side_by_side(work: Callable[[Job], Result], jobs: Sequence[Job], processes: int, order: bool) -> Iterator[Result]:
    """What `work` makes of each job, so many at a time; in the order of the jobs, or as each is there.

    Raises what `work` raises, and ProcessGone as soon as one of the processes has ended. All end with the iterator.
    """
    others = set(active_children())
    # Of a pool's workers none outlives whoever made it, even where that is killed: they read from its pipe.
    with get_context("spawn").Pool(processes, torch.set_num_threads, (1,)) as pool:
        own = set(active_children()) - others
        found: Any = pool.imap(work, jobs) if order else pool.imap_unordered(work, jobs)
        for _ in jobs:
            while True:
                try:
                    result: Result = found.next(LOOK)
                    break
                except NotYet:
                    for code in (each.exitcode for each in own if each.exitcode is not None):
                        how = f"by {signal_name(-code)}" if code < 0 else f"with exit code {code}"
                        raise ProcessGone(f"one of {processes} processes side by side was ended {how}") from None
            yield result
