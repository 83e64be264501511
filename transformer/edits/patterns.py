"""Edits of where heads look, all made on the scores, before the mask and the softmax.

So what the mask forbids stays forbidden and every row still sums to one, by the very formula that the model uses.
Where a query may see none of the keys that it is told to look at, it looks at nothing: its row is zeros.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from transformer.edits.base import EditError, HeadEdit
from transformer.foundation import packed_cells


@dataclass(frozen=True)
class ForcePattern(HeadEdit):
    """Let a head look evenly at chosen keys, at `decoder.0.self_attention.scores`. Rows without any stay as they are.

    `packed` are the chosen cells, a bit each; without any, a kind: "uniform" chooses all keys, "diagonal" each
    query's own place.
    """

    kind: str
    n_query: int = 0
    n_key: int = 0
    packed: bytes = b""

    @classmethod
    def of(cls, chosen: Bool[np.ndarray, "query key"], site: str, head: int, *, kind: str = "painted") -> ForcePattern:
        """Look where `chosen` is True: painted by hand, or what the task expects."""
        n_query, n_key = chosen.shape
        return cls(site, head, kind, n_query, n_key, packed_cells.packed(chosen))

    @property
    def chosen(self) -> Bool[np.ndarray, "query key"]:
        return packed_cells.unpacked(self.packed, self.n_query, self.n_key)

    def apply(self, value: Tensor) -> Tensor:
        self.check(value)
        n_query, n_key = value.shape[-2:]
        if self.kind == "uniform":
            return self.replaced(value, torch.zeros_like(value[:, self.head]))
        if self.kind == "diagonal":
            if self.site.endswith("cross_attention.scores"):
                raise EditError(f"{self.words}: queries and keys stand in two sequences there, so no key is their own")
            chosen = torch.eye(n_query, dtype=torch.bool)
        else:
            if (n_query, n_key) != (self.n_query, self.n_key):
                raise EditError(
                    f"{self.words}: it was made for {self.n_query} × {self.n_key} tokens, and here are "
                    f"{n_query} × {n_key}"
                )
            if not self.chosen.any():
                raise EditError(f"{self.words}: nothing is painted yet")
            chosen = torch.from_numpy(self.chosen)
        chosen = chosen.to(value.device)
        forced = torch.zeros(n_query, n_key).to(value).masked_fill(~chosen, -math.inf)
        return self.replaced(value, torch.where(chosen.any(dim=-1, keepdim=True), forced, value[:, self.head]))

    @property
    def words(self) -> str:
        how = {"uniform": "evenly at all", "diagonal": "at itself", "expected": "at the expected key"}
        return f"{self.name} looking {how.get(self.kind, 'where it was painted')}"


@dataclass(frozen=True)
class ScaleScores(HeadEdit):
    """Multiply a head's scores: above 1 it looks more sharply, from 0 to 1 more evenly, below 0 where it did not."""

    must_change: ClassVar[bool] = True
    factor: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.factor) or abs(self.factor) > 100:
            raise EditError(f"the scores can be scaled by −100 to 100, not by {self.factor:g}")
        if self.factor == 1:
            raise EditError("scores times 1 are what they were: choose another factor")

    def apply(self, value: Tensor) -> Tensor:
        self.check(value)
        return self.replaced(value, value[:, self.head] * self.factor)

    @property
    def words(self) -> str:
        return f"{self.name}’s scores × {self.factor:g}"


@dataclass(frozen=True)
class ShiftScores(HeadEdit):
    """Move a head's scores by so many keys: key j gets that of key j − keys; above 0 the head looks further on.

    Keys that none was moved to get no attention. Below 0 a score of a key that the mask forbids may move to one that
    it allows: what the head would have looked at, not what it reads.
    """

    must_change: ClassVar[bool] = True
    keys: int

    def __post_init__(self) -> None:
        if self.keys == 0:
            raise EditError("scores moved by 0 keys are where they were: choose another number")

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
        return f"{self.name}’s scores moved by {self.keys:+d} {'key' if abs(self.keys) == 1 else 'keys'}"
