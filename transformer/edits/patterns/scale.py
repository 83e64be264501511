"""Multiply a head's scores."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from transformer.edits import Edit, EditError, HeadEdit, number, tame


@dataclass(frozen=True)
class ScaleScores(HeadEdit):
    """Multiply a head's scores by `factor`: above 1 it looks more sharply, from 0 to 1 more evenly, below 0 where it
    did not.

    `site` is where the scores are recorded: "decoder.0.self_attention.scores".
    """

    title: ClassVar[str] = "scale the scores"
    order: ClassVar[int] = 90
    part: ClassVar[str] = "scores"
    needs: ClassVar[str] = "a number"
    sample: ClassVar[str] = "0.5"
    must_change: ClassVar[bool] = True

    factor: float = number("Factor", -100.0, 100.0, default=0.5, step=0.5)

    def __post_init__(self) -> None:
        if not math.isfinite(self.factor) or abs(self.factor) > 100:
            raise EditError(f"the scores can be scaled by −100 to 100, not by {self.factor:g}")
        if self.factor == 1:
            raise EditError("a factor of 1 changes nothing: choose another")

    def apply(self, value: Tensor) -> Tensor:
        self.check(value)
        return self.replaced(value, value[:, self.head] * self.factor)

    @property
    def words(self) -> str:
        return f"{self.name}’s scores × {self.factor:g}"

    def more(self) -> str:
        return f"{self.factor:.10g}"

    @classmethod
    def of_text(cls, site: str, head: int, more: str) -> Edit:
        if not re.fullmatch(r"-?\d{1,3}(\.\d{1,10})?", more, re.ASCII):
            raise EditError(f"scale needs a number such as {cls.sample}, not “{tame(more)}”")
        return cls(site, head, float(more))
