"""The default reversal with each encoding from many seeds, as shipped: who learns it, and after how many steps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dashboard.app_pages.positions.lengths.figures import Line
from dashboard.app_pages.positions.lengths.measurement import called, place_of
from dashboard.models.cache import cached
from transformer.experiments.populations.plan import SweepError
from transformer.experiments.populations.scenes import SCENES, Scenes, scenes
from transformer.experiments.populations.table import TABLE, Population, Row
from transformer.experiments.populations.words import outcome
from transformer.training.runs import DEFAULT_ROOT

FOLDER = DEFAULT_ROOT / "encodings"


@dataclass(frozen=True, eq=False)
class Encoding:
    """One encoding over all its seeds."""

    positions: str
    rows: tuple[Row, ...]
    scenes: Scenes

    @property
    def name(self) -> str:
        """As people write it: "learned", "no positions"."""
        return called(self.positions)

    @property
    def solved(self) -> str:
        """From how many seeds it is solved: "64/64"."""
        ended = [row for row in self.rows if row.status == "finished"]
        return f"{sum(row.solved for row in ended)}/{len(ended)}"


def encodings() -> list[Encoding]:
    """All of them, in the order of the population; none where it is not there or cannot be used."""
    files = [FOLDER / name for name in (TABLE, SCENES)]
    if not all(file.is_file() for file in files):
        return []
    try:
        return _read(FOLDER, tuple(file.stat().st_mtime for file in files))
    except (SweepError, OSError):
        return []


@cached(2)
def _read(folder: Path, stamps: tuple[float, ...]) -> list[Encoding]:
    """What the files say. Raises SweepError where they cannot be used now: that is not remembered."""
    found = Population.load(folder)
    made = []
    for settings in found.sweep.settings():
        rows, seen = found.of(settings), scenes(folder, found, settings)
        if seen is None:
            raise SweepError(f"{SCENES} cannot be used")
        if any(row.status == "finished" for row in rows):
            made.append(Encoding(str(settings["positions"]), tuple(rows), seen))
    return made


def line(each: Encoding) -> Line:
    """The share of the second half that is right, step by step, a line a seed; one that is solved keeps its last."""
    judged = np.array(each.scenes.groups) == each.scenes.groups[-1]
    shares = each.scenes.right[:, :, judged].mean(axis=2) / each.scenes.sequences
    return Line(f"{each.name} {each.solved}", each.scenes.steps, shares, place_of(each.positions))


def sentence(found: list[Encoding]) -> str:
    """From how many seeds each encoding is solved, and after how many steps."""
    return " ".join(f"{each.name[0].upper()}{each.name[1:]}: {outcome(each.rows)}." for each in found)
