"""The population that the page counts: its combinations of settings, with their members and their rows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dashboard.models.cache import cached
from transformer.config import RunConfig
from transformer.experiments.populations.plan import FILE, Member, Value, shown
from transformer.experiments.populations.scenes import Scenes, scenes
from transformer.experiments.populations.table import TABLE, Population, Row

GROWS = 60.0
"""Seconds after its last row for which a population that is not complete is taken to grow."""


@dataclass(frozen=True, eq=False)
class Combination:
    """One value of each setting that varies, trained from every seed."""

    settings: Mapping[str, Value]
    members: tuple[Member, ...]
    """Seed by seed."""
    rows: tuple[Row, ...]
    """Of those that have ended, failures among them, seed by seed."""

    @property
    def text(self) -> str:
        """As a link has it: "positions=learned,n_heads=4"."""
        return ",".join(f"{name}={shown(value)}" for name, value in self.settings.items())

    @property
    def finished(self) -> list[Row]:
        """The rows that are counted."""
        return [row for row in self.rows if row.status == "finished"]

    @property
    def failed(self) -> list[Row]:
        return [row for row in self.rows if row.status == "failed"]

    @property
    def config(self) -> RunConfig | None:
        """Of its first seed; None where there can be no such model."""
        return next((member.config for member in self.members if member.config is not None), None)

    @cached_property
    def seeds(self) -> Mapping[str, int]:
        """The seed of each member, by its name."""
        return {member.name: member.seed for member in self.members}


@dataclass(frozen=True, eq=False)
class Counted:
    """A population, taken apart by its combinations of settings, in the plan's order."""

    folder: Path
    found: Population
    combinations: tuple[Combination, ...]

    @property
    def name(self) -> str:
        return self.found.name

    @property
    def varied(self) -> Mapping[str, tuple[Value, ...]]:
        return self.found.sweep.varied

    @property
    def complete(self) -> bool:
        """Has every member ended?"""
        return len(self.found.rows) == self.found.planned

    def of(self, settings: Mapping[str, Value]) -> Combination:
        """The combination of these settings."""
        return next(each for each in self.combinations if dict(each.settings) == dict(settings))


def stamp(folder: Path) -> tuple[float, ...]:
    """When the plan and the table of a population were last written: both are read anew after that."""
    files = (folder / FILE, folder / TABLE)
    return tuple(file.stat().st_mtime if file.is_file() else 0.0 for file in files)


def grows(counted: Counted) -> bool:
    """Is a population being trained, as far as its table says?"""
    return not counted.complete and time.time() - stamp(counted.folder)[1] < GROWS


@cached(4, "Reading the population …")
def load(folder: Path, stamp: tuple[float, ...]) -> Counted:
    """A population as it stands. Raises SweepError with one sentence."""
    found = Population.load(folder)
    members, seeds = found.sweep.members(), len(found.sweep.seeds)
    combinations = []
    for number, settings in enumerate(found.sweep.settings()):
        own = members[number * seeds : (number + 1) * seeds]
        rows = tuple(found.rows[member.name] for member in own if member.name in found.rows)
        combinations.append(Combination(settings, own, rows))
    return Counted(folder, found, tuple(combinations))


def film(counted: Counted, combination: Combination) -> Scenes | None:
    """How the working heads of a combination's members came to be; None where no member has a film."""
    ended = tuple((row.member, row.step, row.loss) for row in combination.rows)
    found = _film(counted.folder, dict(combination.settings), ended, counted.found)
    known = {row.member for row in combination.rows}
    return found if found is not None and known.issuperset(found.members) else None


@cached(8, "Reading the films of all members …")
def _film(
    folder: Path, settings: dict[str, Value], ended: tuple[tuple[str, int, float | None], ...], _found: Population
) -> Scenes | None:
    try:
        return scenes(folder, _found, settings)
    except (LookupError, ValueError):  # the table names a head that a film does not have, or films of two shapes
        return None
