"""What is said about a piece of code: right, wrong or not decided, in sentences, and as plain values for programs.

Whoever shows a verdict needs no PyTorch.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

RIGHT, WRONG, NOT_RUN, UNDECIDED = 0, 1, 2, 3
"""Exit codes."""
WORDS = ("right", "wrong", "not run", "not decided")
"""What each is called."""


@dataclass(frozen=True)
class Stage:
    """One stage, as the code has it."""

    name: str
    difference: float | None
    """The largest |difference| to the reference; None where the code has no step with these axes."""
    shape: tuple[int, ...] | None
    """Of the code's tensor."""
    expected: tuple[int, ...]
    """Of the reference's, [batch, head, query, key] and the like."""
    reached: bool
    """Are they the same, up to rounding and the order of the axes?"""

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Stage:
        """The stage from plain values."""
        shape = None if values["shape"] is None else tuple(values["shape"])
        return cls(**{**values, "shape": shape, "expected": tuple(values["expected"])})


@dataclass(frozen=True)
class Verdict:
    """The answer to a check."""

    file: str
    name: str = ""
    kind: str = ""
    """attention, module, positions, mask, decoder, targets or piece."""
    not_run: str = ""
    """Why the code could not be run; empty where it could."""
    mistake: str = ""
    """The name of the mistake in the gallery that gives the same results; empty where there is none."""
    wrong: tuple[str, ...] = ()
    """What is wrong, most telling first."""
    undecided: str = ""
    """What was not compared, so that nothing wrong is not yet right, and what would decide it; empty where it was."""
    conventions: tuple[str, ...] = ()
    """How the code writes what others write otherwise."""
    notes: tuple[str, ...] = ()
    """What is right, and worth knowing."""
    tried: tuple[str, ...] = ()
    """What the code was tried on."""
    stages: tuple[Stage, ...] = ()
    """Each stage beside the reference's, where the code could be followed."""
    first: str | None = None
    """The first stage that differs."""
    isolated: tuple[str, ...] = ()
    """What the process was held to."""
    seconds: float = 0.0

    @property
    def code(self) -> int:
        """The exit code: 0 right, 1 wrong, 2 could not be run, 3 not decided."""
        if self.not_run:
            return NOT_RUN
        return WRONG if self.wrong else UNDECIDED if self.undecided else RIGHT

    @property
    def word(self) -> str:
        return WORDS[self.code]

    @property
    def headline(self) -> str:
        """The first sentence alone."""
        return self.not_run or (self.wrong[0] if self.wrong else self.undecided or "Right.")

    def values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        values = {"verdict": self.word, "code": self.code, **dataclasses.asdict(self)}
        for stage in values["stages"]:
            if stage["difference"] is not None and not math.isfinite(stage["difference"]):
                stage["difference"] = None  # JSON has no infinity
        return values

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """The verdict that `values` gave, after its way through JSON; a difference that was infinite is None."""
        plain: dict[str, Any] = {
            field.name: tuple(values[field.name]) if isinstance(field.default, tuple) else values[field.name]
            for field in dataclasses.fields(Verdict)
        }
        return cls(**plain | {"stages": tuple(map(Stage.read, values["stages"]))})

    def text(self) -> str:
        """As one reads it in a terminal."""
        what = f"{self.file}{f':{self.name}' if self.name else ''}{f' ({self.kind})' if self.kind else ''}"
        reasons = [each for each in (self.not_run, *self.wrong, self.undecided) if each]
        lines = [f"{what}: {self.word}", *(f"  {each}" for each in reasons)]
        for title, group in (("Conventions", self.conventions), ("Notes", self.notes), ("Tried", self.tried)):
            if group:
                lines += [f"{title}:", *(f"  {each}" for each in group)]
        return "\n".join(lines)


def of_many(verdicts: Iterable[Verdict]) -> int:
    """The exit code of a folder: 1 where any file is wrong, else 3 where any is not decided, else 2, else 0."""
    codes = {each.code for each in verdicts}
    return next((code for code in (WRONG, UNDECIDED, NOT_RUN) if code in codes), RIGHT)


def together(verdicts: Sequence[Verdict], unnamed: Sequence[str], seconds: float) -> Verdict:
    """One verdict on several definitions of a file. Those of which there is none come to stand in notes: those that
    could not be run, and those `unnamed` whose names do not say what they are.
    """
    words = [f"Not checked, for it could not be run: {one.name}. {one.not_run}" for one in verdicts if one.not_run]
    if unnamed:
        words.append(f"Not checked, for the names do not say what it is: {', '.join(unnamed)}.")
    verdicts = [one for one in verdicts if not one.not_run]
    if len(verdicts) == 1:
        (only,) = verdicts
        return dataclasses.replace(only, notes=(*only.notes, *words), seconds=seconds)
    worst = next((one for one in verdicts if one.wrong), verdicts[0])

    def gathered(part: str) -> tuple[str, ...]:
        return tuple(f"{one.name}: {each}" for one in verdicts for each in getattr(one, part))

    return dataclasses.replace(
        worst,
        name=", ".join(one.name for one in verdicts),
        kind=", ".join(dict.fromkeys(one.kind for one in verdicts)),
        wrong=gathered("wrong"),
        undecided=" ".join(f"{one.name}: {one.undecided}" for one in verdicts if one.undecided),
        conventions=gathered("conventions"),
        notes=(*gathered("notes"), *words),
        tried=tuple(f"{one.name}: {'; '.join(one.tried)}" for one in verdicts if one.tried),
        seconds=seconds,
    )
