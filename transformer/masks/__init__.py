"""Masks: which keys each query may see. `True` means "this query may see this key". Combine them with `&`.

A mask is a frozen dataclass whose one method is a predicate on indices, so that it can be drawn, reasoned about
(`transformer.analysis.accuracy.ceilings`) and applied, without PyTorch and at any length.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Integer

from transformer.foundation.foreign import quoted
from transformer.foundation.registry import Registry

Index = Integer[np.ndarray, "#query #key"]
Visible = Bool[np.ndarray, "*batch query key"]


MOST = 9999
"""The greatest number that a mask can have after a colon."""


def number(default: int, least: int = 0, most: int = MOST) -> Any:
    """A whole-number parameter of a mask, as a field of its dataclass, and what it may be."""
    return dataclasses.field(default=default, metadata={"least": least, "most": most})


def limits(field: dataclasses.Field[int]) -> tuple[int, int]:
    """The least and the greatest value of such a parameter."""
    return field.metadata.get("least", 0), field.metadata.get("most", MOST)


@dataclasses.dataclass(frozen=True)
class Mask(ABC):
    """What a query may see. A rule may have whole-number parameters, each after a colon: "prefix:3", "random:50:7".

    A rule holds at any length. What is painted cell by cell is a mask as well (`painted.py`); it holds up to a length.
    """

    description: ClassVar[str]

    def __post_init__(self) -> None:
        """Are the parameters within their limits? Raises ValueError with a sentence."""
        for field in dataclasses.fields(self):
            value, least, most = getattr(self, field.name), *limits(field)
            if not least <= value <= most:
                raise ValueError(
                    f"the {field.name} of the mask {self.name!r} must be a whole number from {least} to {most}, "
                    f"not {value}"
                )

    @classmethod
    def read(cls, values: Sequence[str]) -> Mask:
        """The mask with what stands after its colons. Raises ValueError with a sentence."""
        name, parameters = cls._name(), dataclasses.fields(cls)
        if len(values) > len(parameters):
            raise ValueError(f"the mask {name!r} takes {len(parameters)} number(s) after a colon, not {len(values)}")
        if not all(value.isascii() and value.isdecimal() and len(value) <= len(str(MOST)) for value in values):
            text = ":".join([name, *values])
            raise ValueError(f"the number after {name!r} must be a whole number from 0 to {MOST}, not {quoted(text)}")
        return cls(*(int(value) for value in values))

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

    @classmethod
    def _name(cls) -> str:
        return cls.__module__.rsplit(".", 1)[-1].replace("_", "-")

    @property
    def name(self) -> str:
        return self._name()

    @property
    def label(self) -> str:
        """What it is called where people read: one word, and short."""
        return str(self)

    def under(self, whose: str = "the", called: str = "") -> str:
        """Words that say what holds under it, "under the causal mask", `called` as it is or by another name."""
        return f"under {whose} {called or self.name} mask"

    @property
    def longest(self) -> int | None:
        """The most positions that it says something about; None: any number of them, for it is a rule."""
        return None

    def __str__(self) -> str:
        """The mask as a link or a command line writes it; `parse` reads it back."""
        values = [str(value) for value in dataclasses.astuple(self)]
        return ":".join([self.name, *values])


MASKS: Registry[Mask] = Registry(
    Mask,
    __name__,
    str(Path(__file__).parent),
)


def rules() -> tuple[str, ...]:
    """The masks that hold at any length, by name: a menu of which every entry can be had."""
    return tuple(name for name in MASKS.names() if MASKS[name]().longest is None)


def parse(text: str) -> Mask:
    """Read "causal", "sliding-window:2", "random:50:7" … Raises ValueError with a sentence of what is allowed."""
    name, *values = text.split(":")
    try:
        kind = MASKS[name]
    except KeyError as error:
        raise ValueError(str(error.args[0])) from None
    return kind.read(values)
