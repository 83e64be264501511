"""Edits: how one forward pass may be changed.

Frozen dataclasses: hashable, so they are cache keys; printable, so they are labels. They enter through
`observe(model, tokens, edits)` and nowhere else, never work in place, and an edit that meets no site is an error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor


class EditError(ValueError):
    """An edit that cannot be made; the message is one sentence."""


@dataclass(frozen=True)
class Edit(ABC):
    """A change at every site whose path matches `site` (shell-style: `decoder.*.self_attention.mask`)."""

    site: str

    def meets(self, site: str) -> bool:
        return fnmatchcase(site, self.site)

    @abstractmethod
    def apply(self, value: Tensor) -> Tensor:
        """The value to use instead; `value` itself is left as it is."""


@dataclass(frozen=True)
class OverrideMask(Edit):
    """Let queries see exactly what `visible` says, whatever the model's own mask and padding."""

    n_query: int
    n_key: int
    packed: bytes

    @classmethod
    def of(cls, visible: Bool[np.ndarray, "query key"], site: str = "*.self_attention.mask") -> OverrideMask:
        """An override from a written-out mask; `True` = may see."""
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


@dataclass(frozen=True)
class AblateHead(Edit):
    """Silence one head: its output z becomes zero. `site` is the attention's `z`: `decoder.0.self_attention.z`."""

    head: int

    def apply(self, value: Tensor) -> Tensor:
        if not 0 <= self.head < value.shape[1]:
            raise EditError(f"there is no head {self.head} at {self.site}: it has heads 0 to {value.shape[1] - 1}")
        kept = torch.arange(value.shape[1], device=value.device) != self.head
        return value * kept[None, :, None, None]
