"""Move a head's scores by keys."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from transformer.edits import Edit, EditError, HeadEdit, number, tame


@dataclass(frozen=True)
class ShiftScores(HeadEdit):
    """Move a head's scores by `keys` keys: key j gets the score of key j − keys. Above 0 the head looks further on.

    Keys to which no score was moved get no attention. Below 0 the score of a key that the mask forbids may move to one
    that it allows: what the head would have looked at, not what it reads.
    """

    title: ClassVar[str] = "shift the scores along the keys"
    order: ClassVar[int] = 100
    part: ClassVar[str] = "scores"
    needs: ClassVar[str] = "a number"
    sample: ClassVar[str] = "-3"
    must_change: ClassVar[bool] = True

    keys: int = number("Keys", -99, 99, default=1)

    def __post_init__(self) -> None:
        if self.keys == 0:
            raise EditError("a shift by 0 keys changes nothing: choose another number")

    def apply(self, value: Tensor) -> Tensor:
        self.check(value)
        own, n_key = value[:, self.head], value.shape[-1]
        if abs(self.keys) >= n_key:
            raise EditError(f"{self.words}: there are only {n_key} keys")
        moved = own.roll(self.keys, dims=-1)
        vacated = slice(0, self.keys) if self.keys > 0 else slice(n_key + self.keys, n_key)
        moved[..., vacated] = -math.inf
        return self.replaced(value, moved)

    @property
    def words(self) -> str:
        return f"{self.name}’s scores shifted by {self.keys:+d} {'key' if abs(self.keys) == 1 else 'keys'}"

    def more(self) -> str:
        return str(self.keys)

    @classmethod
    def of_text(cls, site: str, head: int, more: str) -> Edit:
        if not re.fullmatch(r"[+-]?\d{1,4}", more, re.ASCII):
            raise EditError(f"shift needs a whole number of keys, not “{tame(more)}”")
        return cls(site, head, int(more))
