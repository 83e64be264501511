"""Masks: which keys each query may see. `True` means "this query may see this key". Combine them with `&`.

A mask is a frozen dataclass whose one method is a predicate on indices, so that it can be drawn, reasoned about
(`transformer.analysis.ceilings`) and applied, without PyTorch and at any length.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Integer

from transformer.registry import Registry

Index = Integer[np.ndarray, "#query #key"]
Visible = Bool[np.ndarray, "*batch query key"]


@dataclasses.dataclass(frozen=True)
class Mask(ABC):
    """What a query may see. Subclasses may have one whole-number parameter, written after a colon: "prefix:3"."""

    description: ClassVar[str]

    @abstractmethod
    def visible(
        self, query: Index, key: Index, padding: Bool[np.ndarray, "*#batch #query #key"]
    ) -> Bool[np.ndarray, "..."]:
        """May `query` see `key`? Arguments broadcast: indices from 0, and whether the key is padding."""

    def matrix(
        self, n_query: int, n_key: int | None = None, padding: Bool[np.ndarray, "*batch key"] | None = None
    ) -> Visible:
        """The mask written out, query × key, with leading axes as `padding` has them."""
        n_key = n_query if n_key is None else n_key
        query, key = np.arange(n_query)[:, None], np.arange(n_key)[None, :]
        hidden = np.zeros((1, n_key), dtype=bool) if padding is None else padding[..., None, :]
        seen = self.visible(query, key, hidden)
        return np.broadcast_to(seen, (*hidden.shape[:-2], n_query, n_key)).copy()

    @property
    def name(self) -> str:
        return type(self).__module__.rsplit(".", 1)[-1].replace("_", "-")

    def __str__(self) -> str:
        """The mask as a link or a command line writes it; `parse` reads it back."""
        values = [str(value) for value in dataclasses.astuple(self)]
        return ":".join([self.name, *values])


MASKS: Registry[Mask] = Registry(
    Mask,  # type: ignore[type-abstract]
    __name__,
    str(Path(__file__).parent),
)


def parse(text: str) -> Mask:
    """Read "causal", "sliding-window:2", "prefix:4" … Raises ValueError with a sentence that says what is allowed."""
    name, *values = text.split(":")
    try:
        kind = MASKS[name]
    except KeyError as error:
        raise ValueError(str(error.args[0])) from None
    parameters = dataclasses.fields(kind)
    if len(values) > len(parameters):
        raise ValueError(f"the mask {name!r} takes {len(parameters)} number(s) after a colon, not {len(values)}")
    if not all(value.isdecimal() and len(value) <= 4 for value in values):
        raise ValueError(f"the number after {name!r} must be a whole number from 0 to 9999, not {text!r}")
    return kind(*(int(value) for value in values))
