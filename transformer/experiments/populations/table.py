"""The table of a population: a row for each member that has ended, as plain values. No PyTorch.

Each member's folder holds its row (`row.json`). The sweep's folder holds all rows in one file, `results.csv`, which any
program can read.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.analysis.findings import Head
from transformer.analysis.heads.metrics import MIXED, NAMES
from transformer.experiments.populations.plan import Sweep, SweepError, Value, shown
from transformer.foundation.atomic_files import write_whole
from transformer.foundation.checks import reason as why
from transformer.foundation.foreign import DAMAGED, read_bytes, record, shortened
from transformer.training.stored.checks import expect, number, text, whole

if TYPE_CHECKING:
    from transformer.training.runs import Run

ROW, TABLE = "row.json", "results.csv"
MOST_BYTES = 64 * 2**20
"""In the largest table that is read: that of ten thousand members of many heads."""
OWN = ("status", "solved", "step", "seconds", "loss", "sequences", "exact", "correct", "kinds", "shares", "reason")
"""The columns after the member's name, its settings and its seed."""
_HEAD = re.compile(r"(encoder|decoder)\.\d{1,3}\.(self|cross)_attention\.\d{1,3}", re.ASCII)


@dataclass(frozen=True)
class Row:
    """What became of one member."""

    member: str
    status: str
    """finished, or failed."""
    step: int
    """Steps that were taken."""
    reason: str
    """How it ended, in a sentence."""
    solved: bool = False
    seconds: float = 0.0
    """Of training, that of the members trained in the same batch included."""
    loss: float | None = None
    """Of the last step, in nats."""
    sequences: int = 0
    """Fresh sequences behind the counts that follow."""
    exact: int = 0
    """Whole answers right."""
    correct: tuple[int, ...] = ()
    """[target]: right at each position."""
    kinds: Mapping[str, str] | None = None
    """What each head does, as `HeadMetrics.name` calls it: by the head, "decoder.1.self_attention.3"."""
    shares: Mapping[str, float | None] | None = None
    """Mean share of each head's attention on the token to be said; None where it is not asked for."""

    def __post_init__(self) -> None:
        """Raises ValueError: a file may hold anything."""
        text(self.member)
        text(self.reason)
        expect(self.status in ("finished", "failed"), "its status is neither finished nor failed")
        expect(isinstance(self.solved, bool), "it is neither solved nor not")
        for count in (self.step, self.sequences, self.exact, *self.correct):
            whole(count)
        expect(all(count <= self.sequences for count in (self.exact, *self.correct)), "more is right than was asked")
        for head in (*(self.kinds or {}), *(self.shares or {})):
            expect(_HEAD.fullmatch(head) is not None, f"{shortened(head)} is no head")
        for kind in (self.kinds or {}).values():
            expect(kind in (*NAMES, MIXED), f"nobody calls a head {shortened(kind)}")
        for share in (self.shares or {}).values():
            number(0.0 if share is None else share, 0, 1)
        number(self.seconds, 0, 1e9)
        number(0.0 if self.loss is None else self.loss, -1e9, 1e9)

    @property
    def working(self) -> str | None:
        """The head that looks most at the token to be said; None where that was not measured."""
        known = {head: share for head, share in (self.shares or {}).items() if share is not None}
        return max(known, key=lambda head: (known[head], head)) if known else None

    @property
    def accuracy(self) -> list[float]:
        """Share right at each position."""
        return [count / self.sequences for count in self.correct]

    @classmethod
    def measured(cls, run: Run, *, solved: bool, kinds: Mapping[str, str]) -> Row:
        """From what a run's folder holds when it has been examined."""
        evaluation, example, lines = run.evaluation or {}, run.example, run.metrics()
        shares = {} if example is None else example.survey.expected_share
        return cls(
            member=run.name,
            status="finished",
            step=run.state.step,
            reason=run.state.reason,
            solved=solved,
            seconds=lines[-1]["seconds"] if lines else 0.0,
            loss=lines[-1]["loss"] if lines else None,
            sequences=evaluation["sequences"],
            exact=round(evaluation["exact_match"] * evaluation["sequences"]),
            correct=tuple(evaluation["correct"]),
            kinds=dict(kinds),
            shares={str(head): None if math.isnan(share) else round(share, 3) for head, share in shares.items()},
        )

    @classmethod
    def failed(cls, member: str, step: int, reason: str) -> Row:
        return cls(member, "failed", step, reason)

    def packed(self) -> bytes:
        """As JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, path: Path) -> Row:
        """Read what `packed` made. Raises one of `foreign.DAMAGED` when it is not that, and OSError."""
        return cls._of(record(read_bytes(path, 2**20)))

    @classmethod
    def _of(cls, values: Mapping[str, Any]) -> Row:
        return cls(**{**values, "correct": tuple(values["correct"])})

    def cells(self) -> dict[str, str]:
        """Its own columns of the table, as text; a head that has no name of its kind goes without."""
        mapped = {"kinds": _joined(self.kinds or {}), "shares": _joined(self.shares or {})}
        return {
            "status": self.status,
            "solved": "yes" if self.solved else "no",
            "step": str(self.step),
            "seconds": f"{self.seconds:.3f}",
            "loss": "" if self.loss is None else f"{self.loss:.6g}",
            "sequences": str(self.sequences),
            "exact": str(self.exact),
            "correct": " ".join(map(str, self.correct)),
            **mapped,
            "reason": self.reason,
        }

    @classmethod
    def of_cells(cls, cells: Mapping[str, str]) -> Row:
        """From a line of the table. Raises one of `foreign.DAMAGED` when it is none."""
        shares = {head: float(share) if share else None for head, share in _split(cells["shares"]).items()}
        return cls(
            member=cells["member"],
            status=cells["status"],
            step=int(cells["step"]),
            reason=cells["reason"],
            solved={"yes": True, "no": False}[cells["solved"]],
            seconds=float(cells["seconds"]),
            loss=float(cells["loss"]) if cells["loss"] else None,
            sequences=int(cells["sequences"]),
            exact=int(cells["exact"]),
            correct=tuple(int(count) for count in cells["correct"].split()),
            kinds={head: kind or MIXED for head, kind in _split(cells["kinds"]).items()},
            shares=shares,
        )


@dataclass(frozen=True)
class Population:
    """A sweep, and the rows of those of its members that have ended."""

    name: str
    """Its folder's name."""
    sweep: Sweep
    rows: Mapping[str, Row]
    """By the member's name, in the plan's order."""

    @property
    def planned(self) -> int:
        return self.sweep.combinations * len(self.sweep.seeds)

    def of(self, settings: Mapping[str, Value]) -> list[Row]:
        """The rows of one combination of settings, seed by seed."""
        chosen = dict(settings)
        names = [each.name for each in self.sweep.members() if dict(each.settings) == chosen]
        return [self.rows[name] for name in names if name in self.rows]

    @classmethod
    def load(cls, folder: Path) -> Population:
        """Read a sweep's folder as it stands: its table, or where there is none yet, its members' rows.

        Raises SweepError with one sentence when it is none.
        """
        sweep = Sweep.load(folder)
        names = [each.name for each in sweep.members()]
        try:
            found = read_table(folder / TABLE)
        except FileNotFoundError:
            found = {}
        except (*DAMAGED, OSError) as error:
            raise SweepError(f"{TABLE} cannot be used: {why(error)}") from None
        for name in names:
            if name not in found:
                with contextlib.suppress(*DAMAGED, OSError):  # none yet, or one that is trained anew
                    found[name] = Row.read(folder / name / ROW)
        return cls(folder.name, sweep, {name: found[name] for name in names if name in found})


def read_table(path: Path) -> dict[str, Row]:
    """The rows of a table by their members. Raises one of `foreign.DAMAGED` when it is none, and OSError."""
    text = read_bytes(path, MOST_BYTES).decode()
    rows = [Row.of_cells(cells) for cells in csv.DictReader(io.StringIO(text), strict=True)]
    return {row.member: row for row in rows}


def write_table(folder: Path, sweep: Sweep, rows: Iterable[Row]) -> None:
    """Write all rows into one file, whole. Raises OSError."""
    known = {row.member: row for row in rows}
    file = io.StringIO()
    writer = csv.DictWriter(file, ["member", *sweep.varied, "seed", *OWN], lineterminator="\n")
    writer.writeheader()
    for member in sweep.members():
        if member.name in known:
            settings = {name: shown(value) for name, value in member.settings.items()}
            writer.writerow({"member": member.name, **settings, "seed": member.seed, **known[member.name].cells()})
    write_whole(folder / TABLE, file.getvalue().encode())


def _joined(values: Mapping[str, object]) -> str:
    """What is known of each head, layer by layer: "decoder.0.self_attention=expected//previous decoder.1…"."""
    layers: dict[str, list[str]] = {}
    for head, value in values.items():
        word = "" if value is None or value == MIXED else str(value)
        layers.setdefault(Head.parse(head).site, []).append(word)
    return " ".join(f"{site}={'/'.join(words)}" for site, words in layers.items())


def _split(words: str) -> dict[str, str]:
    """What `_joined` wrote, by the head."""
    layers = [word.split("=", 1) for word in words.split()]
    return {str(Head(site, i)): word for site, heads in layers for i, word in enumerate(heads.split("/"))}


def populations(root: Path) -> list[Path]:
    """The folders below a folder that hold a sweep, by name."""
    return sorted(path.parent for path in root.glob("*/sweep.json"))
