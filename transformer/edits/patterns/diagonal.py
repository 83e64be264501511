"""Let a head look at each query's own place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transformer.edits import EditError, HeadEdit
from transformer.edits.patterns._forced import forced


@dataclass(frozen=True)
class DiagonalPattern(HeadEdit):
    """Let each query of a head look at its own place, and at nothing else."""

    title: ClassVar[str] = "look at itself"
    order: ClassVar[int] = 60
    part: ClassVar[str] = "scores"

    def apply(self, value: Tensor) -> Tensor:
        self.check(value)
        if self.site.endswith("cross_attention.scores"):
            raise EditError(
                f"{self.words}: queries and keys belong to two sequences there, so no query has a key of its own"
            )
        own = torch.eye(value.shape[-1], dtype=torch.bool)
        return self.replaced(value, forced(value[:, self.head], own))

    @property
    def words(self) -> str:
        return f"{self.name} looking at itself"
