"""What a check has found, as the page shows it: plain values, for PyTorch need not be there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stage:
    """One stage of attention, beside the reference's."""

    name: str
    difference: float | None
    """The largest |difference|; None where there is no number to say."""
    shape: tuple[int, ...] | None
    """Of the code's tensor; None where the code has no such step."""
    expected: tuple[int, ...]
    reached: bool
    """Is it the same, up to rounding and the order of the axes?"""

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Stage:
        """The stage in an answer."""
        shape = None if said["shape"] is None else tuple(said["shape"])
        return cls(said["name"], said["difference"], shape, tuple(said["expected"]), said["reached"])


@dataclass(frozen=True)
class Known:
    """A mistake of the gallery."""

    title: str
    hidden: str
    exposes: str
    mend: str
    met: str
    difference: tuple[str, ...]
    """From wrong to right, line by line, as the gallery has it."""


@dataclass(frozen=True)
class Verdict:
    """The answer to a check; its fields are those of `transformer.checking.verdict.Verdict`."""

    verdict: str
    """right, wrong or not run."""
    name: str = ""
    kind: str = ""
    not_run: str = ""
    wrong: tuple[str, ...] = ()
    conventions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()
    first: str | None = None
    isolated: tuple[str, ...] = ()
    seconds: float = 0.0
    known: Known | None = None
    """The mistake of the gallery that gives the same results."""

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Verdict:
        """The verdict in an answer of the process that checks."""
        found, known = said["verdict"], said["gallery"]
        plain: dict[str, Any] = {
            each: found[each] for each in ("verdict", "name", "kind", "not_run", "first", "seconds")
        }
        for each in ("wrong", "conventions", "notes", "tried", "isolated"):
            plain[each] = tuple(found[each])
        mistake = None if known is None else Known(**{**known, "difference": tuple(known["difference"])})
        return cls(**plain, stages=tuple(map(Stage.read, found["stages"])), known=mistake)

    def stage(self, name: str) -> Stage:
        """The stage of a name."""
        return next(each for each in self.stages if each.name == name)
