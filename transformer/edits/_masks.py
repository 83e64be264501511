"""Edits of what may be seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from transformer.edits._base import Edit, EditError


@dataclass(frozen=True)
class OverrideMask(Edit):
    """Let queries see exactly what a mask says, whatever the model's own mask and padding.

    `OverrideMask.of(visible)` makes one from an array that is True where a query may see a key.
    """

    n_query: int
    n_key: int
    packed: bytes

    @classmethod
    def of(cls, visible: Bool[np.ndarray, "query key"], site: str = "*.self_attention.mask") -> OverrideMask:
        """An override from a mask, of every self-attention unless `site` says which. `True` means: may see."""
        n_query, n_key = visible.shape
        return cls(site, n_query, n_key, np.packbits(visible).tobytes())

    @property
    def visible(self) -> Bool[np.ndarray, "query key"]:
        bits = np.unpackbits(np.frombuffer(self.packed, dtype=np.uint8), count=self.n_query * self.n_key)
        return bits.astype(bool).reshape(self.n_query, self.n_key)

    def apply(self, value: Tensor) -> Tensor:
        if value.shape[-2:] != (self.n_query, self.n_key):
            raise EditError(
                f"the mask is {self.n_query} × {self.n_key}, but {self.site} is {value.shape[-2]} × {value.shape[-1]}"
            )
        return torch.from_numpy(self.visible).to(value.device).expand_as(value)

    @property
    def words(self) -> str:
        return f"mask of {self.n_query} × {self.n_key}"
