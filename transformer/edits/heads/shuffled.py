"""Remove a head: each sequence gets what it hands on in another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transformer.edits import EditError, HeadEdit

SEED = 0
"""Of the order in which sequences are shuffled."""


@dataclass(frozen=True)
class ResampleHead(HeadEdit):
    """Remove one head: the z of the sequences of this pass change owners, each getting that of another (resampling;
    Chan et al., 2022, "Causal Scrubbing"): drawn with a fixed seed, so it is the same at every call.

    One sequence alone raises EditError.
    """

    title: ClassVar[str] = "remove a head: shuffled"
    order: ClassVar[int] = 30

    def apply(self, value: Tensor) -> Tensor:
        self.check(value)
        if len(value) < 2:
            raise EditError(f"{self.words} needs several sequences in one pass, and here is only one")
        own = value[:, self.head]
        # A random cycle through all sequences (Sattolo, 1986): a permutation that leaves none in its place.
        cycle = torch.randperm(len(own), generator=torch.Generator().manual_seed(SEED)).to(own.device)
        shuffled = torch.empty_like(own)
        shuffled[cycle] = own[cycle.roll(1)]
        return self.replaced(value, shuffled)

    @property
    def words(self) -> str:
        return f"{self.name} shuffled between sequences"
