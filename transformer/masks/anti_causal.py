"""The decoder's mask in the mirror: no query sees an earlier key (the backward half of ELMo, or of a BiLSTM)."""

from dataclasses import dataclass
from typing import ClassVar

from transformer.masks import Mask


@dataclass(frozen=True)
class AntiCausal(Mask):
    """A query sees itself and what comes after."""

    description: ClassVar[str] = "a query sees itself and what comes after it"

    def visible(self, query, key, padding):
        return key >= query
