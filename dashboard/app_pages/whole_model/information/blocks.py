"""How finely influence is measured: every token, or one token of each block of a long input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

import numpy as np

from dashboard.figures.kit.token_axis import span
from dashboard.models.budget import FINEST, MOST_BLOCKS
from transformer.analysis.findings import blocks, spokesmen


@dataclass(frozen=True)
class Grain:
    """Blocks of `factor` neighbours, among the slots and among the outputs; the last of a row may have fewer.

    One slot of each block is poked, and one output of each stands for it: of words the longest, of symbols the first.
    """

    slots: tuple[str, ...]
    """What is read: the source's tokens first, where there is one."""
    outputs: tuple[str, ...]
    """What is said."""
    n_source: int
    factor: int
    poked: tuple[int, ...]
    """The slots that are poked, one of each block."""
    words: bool
    """Is a block called by its word, and not by its places?"""

    @classmethod
    def of(
        cls, source: Sequence[str], read: Sequence[str], outputs: Sequence[str], factor: int, *, words: bool
    ) -> Grain:
        """The slots of a source and of the tokens that are read, and the outputs, in blocks of `factor`."""
        found = cls((*source, *read), tuple(outputs), len(source), factor, (), words)
        poked = found._chosen(source), found._chosen(read)
        return replace(found, poked=(*poked[0], *(len(source) + place for place in poked[1])))

    @property
    def whole(self) -> bool:
        """Does each token stand by itself?"""
        return self.factor == 1

    def poking(self, slot: int) -> Grain:
        """The same with this slot poked in place of the one that stands for its block."""
        column = self.column(slot)
        return replace(self, poked=(*self.poked[:column], slot, *self.poked[column + 1 :]))

    def column(self, slot: int) -> int:
        """The block in which a slot is."""
        return int(np.searchsorted(self._columns, slot, side="right")) - 1

    @property
    def n_source_columns(self) -> int:
        return -(-self.n_source // self.factor)

    @cached_property
    def standing(self) -> tuple[int, ...]:
        """The outputs that stand for their blocks."""
        return self._chosen(self.outputs)

    def _chosen(self, names: Sequence[str]) -> tuple[int, ...]:
        """Which of them stand for their blocks: the longest words, or the first."""
        return spokesmen(names if self.words else [""] * len(names), self.factor)

    # --- numbers

    def by_row(self, values: np.ndarray) -> np.ndarray:
        """The greatest of each block of outputs: [output, column] as [row, column]; of bools, whether any holds."""
        return np.maximum.reduceat(values, self._rows, axis=0)

    def by_block(self, values: np.ndarray) -> np.ndarray:
        """The greatest of each block of outputs and slots: [output, slot] as [row, column]."""
        return np.maximum.reduceat(self.by_row(values), self._columns, axis=1)

    @property
    def _rows(self) -> np.ndarray:
        return np.arange(0, len(self.outputs), self.factor)

    @cached_property
    def _columns(self) -> np.ndarray:
        tokens = np.arange(self.n_source, len(self.slots), self.factor)
        return np.concatenate([np.arange(0, self.n_source, self.factor), tokens])

    # --- names

    @property
    def row_labels(self) -> tuple[str, ...]:
        return blocks(self.outputs, self.factor, words=self.words)

    @property
    def column_labels(self) -> tuple[str, ...]:
        """The tokens that are poked, or the places of their blocks."""
        if self.whole:
            return self.slots
        if self.words:
            return tuple(f"{self.slots[slot]}…" for slot in self.poked)
        parts = self.slots[: self.n_source], self.slots[self.n_source :]
        return tuple(label for part in parts for label in blocks(part, self.factor))

    @property
    def row_places(self) -> list[str]:
        """Where the outputs of each row stand: "9–12"."""
        return [span(first + 1, min(first + self.factor, len(self.outputs))) for first in self._rows.tolist()]

    @property
    def column_places(self) -> list[str]:
        """Where the slots of each column stand: "9–12", "9–12 of the source"."""
        n, found = self.n_source, []
        for first in self._columns.tolist():
            if first < n:
                found.append(f"{span(first + 1, min(first + self.factor, n))} of the source")
            else:
                found.append(span(first - n + 1, min(first + self.factor, len(self.slots)) - n))
        return found

    def place(self, slot: int) -> str:
        """A token and where it stands: "'3' at 2", "'3' at 2 of the source"."""
        if slot < self.n_source:
            return f"'{self.slots[slot]}' at {slot + 1} of the source"
        return f"'{self.slots[slot]}' at {slot - self.n_source + 1}"


def factor_of(parts: Sequence[int], affordable: float) -> int:
    """How many slots a block needs so that no more blocks than are affordable can be made of rows of so many slots."""
    if sum(parts) <= min(affordable, FINEST):
        return 1
    most = max(len(parts), min(MOST_BLOCKS, int(affordable)))
    return next(factor for factor in count(2) if sum(-(-part // factor) for part in parts) <= most)
