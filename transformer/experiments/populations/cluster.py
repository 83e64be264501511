"""Training a population on many machines: a Dask cluster takes its members, one by one.

Dask (Rocklin, 2015) schedules; a member is trained as it is on one machine. Workers come and go: the member of one that
dies is given to another.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from transformer.config import RunConfig
from transformer.experiments.populations.carry_out import train_one
from transformer.experiments.populations.plan import SweepError
from transformer.experiments.populations.table import Row
from transformer.foundation.atomic_files import write_whole
from transformer.foundation.foreign import shortened
from transformer.training import lock
from transformer.training.runs import Run

WAIT = "10s"
"""For a scheduler that does not answer."""
Files = dict[str, bytes]
"""What a run folder holds, by the paths below it."""


def on_cluster(folders: Sequence[Path], scheduler: str) -> Iterator[Row]:
    """Train the members of these run folders on the workers of a scheduler, "tcp://host:8786".

    A worker that sees the folder trains in it, so that whoever takes it over goes on from what was written down last.
    One that does not trains in a folder of its own, and sends it back whole. Raises SweepError, with one sentence, when
    Dask is not installed or the scheduler does not answer.
    """
    try:
        from distributed import Client, KilledWorker, as_completed
    except ImportError:
        raise SweepError("a cluster needs Dask: pip install 'attention-lab[cluster]'") from None
    try:
        client = Client(scheduler, timeout=WAIT)
    except (OSError, ValueError) as error:
        raise SweepError(f"there is no scheduler at {shortened(scheduler)}: {type(error).__name__}") from None
    with client:
        jobs = {
            client.submit(train_far, str(folder.absolute()), Run(folder).config.to_dict(), pure=False): folder
            for folder in folders
        }
        for job in as_completed(jobs):
            folder = jobs[job]
            try:
                rows, files = job.result()
            except KilledWorker as error:
                yield Row.failed(folder.name, 0, f"{error.allowed_failures + 1} workers died with it")
                continue
            except Exception as error:  # whatever a worker on another machine lacks
                yield Row.failed(folder.name, 0, shortened(f"{type(error).__name__}: {error}", 200))
                continue
            for name, content in files.items():
                (folder / name).parent.mkdir(exist_ok=True)
                write_whole(folder / name, content)
            yield from rows


def train_far(place: str, config: dict[str, Any]) -> tuple[list[Row], Files]:
    """On a worker: train the member of a run folder, there or, where the folder cannot be seen, in one of its own.

    Returns its row, and the files of a folder that is to be sent back.
    """
    import torch

    torch.set_num_threads(1)
    folder = Path(place)
    if (folder / "run.json").is_file():
        return train_one(folder), {}
    with tempfile.TemporaryDirectory(prefix="attention-lab-") as own:
        run = Run.create(Path(own) / folder.name, RunConfig.from_dict(config))
        rows = train_one(run.folder)
        paths = [path for path in run.folder.rglob("*") if path.is_file() and path.name != lock.NAME]
        return rows, {str(path.relative_to(run.folder)): path.read_bytes() for path in paths}
