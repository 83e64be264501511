"""A member of a population whose weights are not kept: trained again from its seed, where it is first asked for.

The shipped population has no weights. The seed and the settings of a member draw the same numbers again, so it takes
the same steps: to the bit on the same kind of processor and PyTorch, else to a rounding.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.models.cache import cached
from dashboard.models.on_the_spot import quick_training
from transformer.config import RunConfig
from transformer.experiments.populations.plan import FILE
from transformer.experiments.populations.table import TABLE, Population, Row
from transformer.training.runs import Run

if TYPE_CHECKING:
    from transformer.network import Network

NAME = re.compile(r"((?!\.)[^@/\\]+)/((?!\.)[^@/\\]+)")
"""The name of a member: its population's folder, and its own."""


@dataclass(frozen=True)
class Bare:
    """A member without weights: what is trained again, and what became of it the first time."""

    config: RunConfig
    row: Row


def bare(root: Path, name: str) -> Bare | None:
    """The member that a model's name stands for; None where it is none, or where its weights are kept."""
    found = NAME.fullmatch(name)
    if found is None or Run(root / name).snapshots():
        return None
    try:
        stamps = tuple((root / found[1] / file).stat().st_mtime for file in (FILE, TABLE))
        return _members(root / found[1], stamps).get(found[2])
    except (OSError, ValueError):  # SweepError among them
        return None


@cached(8)
def _members(folder: Path, stamps: tuple[float, ...]) -> dict[str, Bare]:
    """All members of a population that have ended well, by name. Raises SweepError."""
    found = Population.load(folder)
    return {
        member.name: Bare(member.config, found.rows[member.name])
        for member in found.sweep.members()
        if member.config is not None and member.name in found.rows and found.rows[member.name].status == "finished"
    }


def may_be_seen(member: Bare, may_train: bool) -> bool:
    """May it be looked at by somebody who may begin a training, or only look at what others have begun?"""
    return may_train or quick_training.is_kept(member.config)


def network(member: Bare) -> Network:
    """The model, once it is trained again."""
    return quick_training.trained(member.config).model
