"""The command that trains a population: one setting from many seeds, and every combination of what varies."""

from __future__ import annotations

import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from transformer.commands.devices import named_device
from transformer.config import ConfigError
from transformer.experiments.populations.plan import planned, shown
from transformer.foundation.foreign import shortened
from transformer.training.runs import ROOT

if TYPE_CHECKING:
    from transformer.experiments.populations.carry_out import Carrier
    from transformer.experiments.populations.table import Population

SCHEDULER = re.compile(r"(\w{1,10}://)?[^\s/]{1,255}:\d{1,5}")
"""How the address of a scheduler is written."""


def sweep(
    *,
    seeds: str = "0-63",
    out: Path = ROOT / "sweep",
    how: Literal["auto", "together", "side-by-side"] = "auto",
    processes: int | None = None,
    on: str = "",
    **settings: Annotated[str, Parameter(help="Any option of `train`; several values are separated by commas.")],
) -> int:
    """Train a population: every combination of the settings, from every seed.

    Each member is a run folder below the sweep's. `results.csv` there has a row for each one that has ended, at any
    instant. The same command goes on with what was cut off.

    Parameters
    ----------
    seeds
        Seeds, and spans of them: 0-63, or 0,3,5-7.
    out
        The sweep's folder. The dashboard looks for sweeps below checkpoints/.
    how
        Models of one shape as one batch (together), one by one in several processes (side-by-side), or whichever is
        quicker (auto): a batch on a GPU, processes on a CPU.
    processes
        How many are trained side by side; left out, one for each core.
    on
        The scheduler of a Dask cluster that trains them in place of this machine: tcp://host:8786.
    """
    if processes is not None and not 1 <= processes <= 256:
        raise ConfigError(f"processes must be between 1 and 256, not {processes}")
    if on and not SCHEDULER.fullmatch(on):
        raise ConfigError(f"on must be the address of a scheduler, such as tcp://host:8786, not {shortened(on)}")
    plan = planned(seeds, settings)

    from transformer.experiments.populations.carry_out import carry_out, in_batches, one_by_one
    from transformer.experiments.populations.cluster import on_cluster
    from transformer.experiments.populations.words import outcome

    device = named_device(str(plan.fixed.get("device", "auto")))
    together = how == "together" or (how == "auto" and device.type != "cpu")
    carrier: Carrier = partial(in_batches, device=device)
    if on:
        carrier = partial(on_cluster, scheduler=on)
    elif not together:
        carrier = partial(one_by_one, processes=processes or os.cpu_count() or 1)
    found: Population | None = None
    for found in carry_out(plan, out, carrier):
        _tell(found)
    assert found is not None
    for combination in plan.settings():
        rows = found.of(combination)
        if any(row.status == "finished" for row in rows):
            named = ", ".join(f"{name} {shown(value)}" for name, value in combination.items())
            print(f"{named or 'solved from'}: {outcome(rows)}")
    failed = [row for row in found.rows.values() if row.status == "failed"]
    for row in failed:
        print(f"{row.member}: {row.reason}", file=sys.stderr)
    return 1 if failed else 0


def _tell(found: Population) -> None:
    """How far it is, in a line that is written over where somebody looks on."""
    solved = sum(row.solved for row in found.rows.values())
    ending = "\n" if len(found.rows) == found.planned or not sys.stdout.isatty() else ""
    print(f"\r{len(found.rows)} of {found.planned} have ended, {solved} of them solved", end=ending, flush=True)
