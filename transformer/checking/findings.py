"""What is gathered while a piece of code is judged, and when two results are the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from transformer.checking.faults import Refused
from transformer.checking.stages import Divergence
from transformer.mistakes import MISTAKES, Mistake

TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 6e-2}
"""How far two results may be apart, relative to the largest number of 1 at least, and be the same but for rounding."""


@dataclass
class Findings:
    """What was found so far; becomes a `Verdict`."""

    wrong: list[str] = field(default_factory=list)
    conventions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    mistake: str = ""
    undecided: str = ""
    """What was not compared with the reference, and what would decide it; empty where all of it was."""
    divergence: Divergence | None = None

    def call_by_name(self, mistake: type[Mistake]) -> None:
        """The code is this mistake."""
        self.mistake = mistake.name
        self.wrong.insert(0, f"{mistake.title}. {mistake.mend}")

    def call_if_there(self, name: str) -> None:
        """The code is the mistake of this name, if the gallery has it."""
        if name in MISTAKES.names():
            self.call_by_name(MISTAKES[name])

    def try_it(self, words: str, attempt: Callable[[], str]) -> None:
        """Make an attempt that returns what is wrong, empty where nothing is; a refusal is wrong as well."""
        self.tried.append(words)
        try:
            found = attempt()
        except Refused as refused:
            if refused.fatal:
                raise
            found = f"With {words}: {refused}"
        if found:
            self.wrong.append(found)

    def look_at(self, words: str, attempt: Callable[[], str]) -> None:
        """The same; what is found, or refused, is a note and does not fail the code."""
        before = len(self.wrong)
        self.try_it(words, attempt)
        self.notes += self.wrong[before:]
        del self.wrong[before:]


def difference(found: Tensor, expected: Tensor) -> float:
    """The largest |difference|, infinite where the shapes differ or a number is none."""
    if found.shape != expected.shape:
        return float("inf")
    gap = (found.double() - expected.double()).abs()
    return float("inf") if bool(gap.isnan().any()) else float(gap.max()) if gap.numel() else 0.0


def same(found: Tensor, expected: Tensor, dtype: torch.dtype = torch.float32) -> bool:
    """Are two results the same, up to rounding in a precision?"""
    size = max(1.0, float(expected.double().abs().max())) if expected.numel() else 1.0
    return difference(found, expected) <= TOLERANCE[dtype] * size


def repeats(found: Tensor, again: Tensor) -> bool:
    """Does a second call give the same, what is no number included?"""
    return torch.equal(found.isnan(), again.isnan()) and same(found.nan_to_num(), again.nan_to_num())


def moved(found: Tensor, before: Tensor) -> Tensor:
    """|difference| of each number, for results of any type: PyTorch does not subtract truth values."""
    return (found.double() - before.double()).abs()


def share(found: Tensor, expected: Tensor) -> float:
    """The largest |difference| as a share of the largest number expected."""
    return difference(found, expected) / (float(expected.double().abs().max()) or 1.0)


def mistakes(base: type[Mistake]) -> list[type[Mistake]]:
    """The gallery's mistakes of a kind: all take and give what their base class says."""
    return [found for found in map(MISTAKES.__getitem__, MISTAKES.names()) if issubclass(found, base)]


def unlike(found: Tensor, expected: Tensor, words: str, dtype: torch.dtype = torch.float32) -> str:
    """The sentence that two results differ; empty where they are the same."""
    if same(found, expected, dtype):
        return ""
    if found.isnan().any():
        return f"With {words} the output holds NaN."
    return f"With {words} the output differs from the reference by up to {difference(found, expected):.3g}."


def of_another_precision(found: Tensor, wanted: torch.dtype) -> str:
    """The sentence that a result has not the precision of what was handed over; empty where it has."""
    if found.dtype == wanted:
        return ""
    wanted_name, found_name = (str(each).removeprefix("torch.") for each in (wanted, found.dtype))
    return f"In {wanted_name} the output is {found_name}: something in the code has a precision of its own."
