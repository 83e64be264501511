"""Remove the positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transformer.edits import PlacesEdit


@dataclass(frozen=True)
class RemovePositions(PlacesEdit):
    """Tell the model nothing about positions: all tokens stand at the same place, and no vector is added for it."""

    title: ClassVar[str] = "remove the positions"
    order: ClassVar[int] = 170

    site: str = "*.p*"

    def meets(self, site: str) -> bool:
        return super().meets(site) and site.rsplit(".", 1)[-1] in ("places", "position_embedding")

    def apply(self, value: Tensor) -> Tensor:
        return torch.zeros_like(value)

    @property
    def words(self) -> str:
        return "no positions"
