"""The laws of claims: what must be true of a model of which a page says a sentence.

A claim is a function marked `@claim` (transformer/foundation/claims.py). Its laws stand in `laws/`, one for each form
that its sentence takes: a pattern, and a function that is given the model and what the sentence names, and asserts that
it is true. A law works out what it needs from raw weights (`world.py`), and not by the analysis that the page asks.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from tests.kit.claims.world import World
from transformer.foundation.claims import Claim


@dataclass(frozen=True)
class Law:
    """What one form of a claim's sentence promises."""

    claim: str
    form: re.Pattern[str] | None
    """The sentence, whole; None where nothing is said."""
    holds: Callable[..., None]
    """Raises AssertionError where the sentence is false of a world. It is given what the form's groups caught: as
    `Shown`, where the parameter is said to be one."""
    rare: bool = False
    """Does no model of the grid come to say it? Then a test of the claim itself has to."""
    met: list[str] = field(default_factory=list, compare=False)
    """Sentences that it has judged."""

    @property
    def called(self) -> str:
        return f"{self.claim}: {self.form.pattern if self.form else 'nothing is said'}"

    def fits(self, sentence: str | None) -> re.Match[str] | bool | None:
        return self.form.fullmatch(sentence) if self.form and sentence else self.form is None and not sentence

    def judge(self, world: World, sentence: str | None) -> None:
        """Raises AssertionError where the sentence is false of this world."""
        named = self.form.fullmatch(sentence).groupdict() if self.form and sentence else {}  # type: ignore[union-attr]
        kinds = inspect.get_annotations(self.holds)
        self.met.append(sentence or "")
        self.holds(
            world, **{k: v if v is None or "Shown" not in kinds.get(k, "") else Shown(v) for k, v in named.items()}
        )


LAWS: dict[str, list[Law]] = {}
"""The laws of each claim, by its name."""


def law(claim: str, *forms: str | None, rare: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The law of a claim's sentence in these forms: regular expressions of the whole, with a group for all it names."""

    def enter(holds: Callable[..., None]) -> Callable[..., None]:
        for form in forms:
            compiled = None if form is None else re.compile(form, re.DOTALL)
            LAWS.setdefault(claim, []).append(Law(claim, compiled, holds, rare))
        return holds

    return enter


class Shown(str):
    """A number as a sentence shows it: it stands for all that rounds to it."""

    @property
    def value(self) -> float:
        return float(self.replace(",", "").replace("−", "-").rstrip("%"))

    @property
    def half(self) -> float:
        """Half of its last digit, and a little for another order of rounding."""
        digits = self.partition(".")[2].rstrip("%")
        return 0.5 * 10.0 ** -len(digits) + 2e-4

    def __eq__(self, other: object) -> bool:
        """Is this how a number is shown? Of another text: is it the same?"""
        if isinstance(other, str):
            return str(self) == str(other)
        return abs(self.value - float(other)) <= self.half  # type: ignore[arg-type]

    __hash__ = str.__hash__


@cache
def enter_all() -> None:
    """Enter the laws of every file."""
    for module in iter_modules([f"{each}/laws" for each in __path__]):
        import_module(f"{__name__}.laws.{module.name}")


def judge(world: World, claim: Claim) -> None:
    """Raises AssertionError where a claim is false of a world, or where it has a form of which no law speaks."""
    enter_all()
    laws = [law for law in LAWS.get(claim.name, []) if law.fits(claim.sentence)]
    assert len(laws) == 1, f"{len(laws)} laws of {claim.name} speak of {claim.sentence!r}"
    laws[0].judge(world, claim.sentence)
