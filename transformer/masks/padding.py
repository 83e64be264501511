"""Padding hidden, and nothing else: what lets sequences of different lengths share a batch."""

from dataclasses import dataclass
from typing import ClassVar

from transformer.masks import Mask


@dataclass(frozen=True)
class Padding(Mask):
    """Every query sees every key that is not padding. The model adds this to whatever mask it has."""

    description: ClassVar[str] = "every query sees every key that is not padding"

    def visible(self, query, key, padding):
        return ~padding & (query >= 0) & (key >= 0)
