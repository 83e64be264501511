"""The three layouts in which a model reads a task: one token after the other, all at once, or through an encoder."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from transformer.masks import Mask
from transformer.masks.causal import Causal
from transformer.masks.full import Full
from transformer.tasks import Task


class Continuation(Task):
    """`[x1..xn, SEP, y1..yn]` read one token at a time, each target the next token."""

    architectures: ClassVar[tuple[str, ...]] = ("decoder", "encoder")
    limit: ClassVar[Mask] = Causal()

    @property
    def n_ctx(self) -> int:
        return 2 * self.length

    def _rows(self, question):
        sequence = np.concatenate([question, [self.separator], self.answer(question)])
        return sequence[:-1], sequence[1:], np.arange(1, len(sequence)) > len(question)

    def target_names(self, length: int) -> tuple[str, ...]:
        return (*(f"x{i}" for i in range(2, length + 1)), "SEP", *(f"y{i}" for i in range(1, length + 1)))

    def groups(self, length: int) -> tuple[str, ...]:
        return ("first half",) * (length - 1) + ("separator",) + ("second half",) * length

    def symbols_of_slots(self, length: int):
        return np.concatenate([np.arange(length), [-1], self.answer(np.arange(length))[:-1]])

    def symbols_of_targets(self, length: int):
        return np.concatenate([np.arange(1, length), [-1], self.answer(np.arange(length))])

    def _length_of(self, n_targets: int) -> int:
        return n_targets // 2


class Aligned(Task):
    """`x1..xn` read at once; the target at position i is yi."""

    architectures: ClassVar[tuple[str, ...]] = ("encoder", "decoder")
    limit: ClassVar[Mask] = Full()

    @property
    def n_ctx(self) -> int:
        return self.length

    def _rows(self, question):
        return question, self.answer(question), np.ones(len(question), dtype=bool)

    def target_names(self, length: int) -> tuple[str, ...]:
        return tuple(f"y{i}" for i in range(1, length + 1))

    def groups(self, length: int) -> tuple[str, ...]:
        return ("first half",) * (length // 2) + ("second half",) * (length - length // 2)

    def symbols_of_slots(self, length: int):
        return np.arange(length)

    def symbols_of_targets(self, length: int):
        return self.answer(np.arange(length))


class Translation(Aligned):
    """`x1..xn` read by an encoder; a decoder that starts from SEP says y1..yn, each target the next token."""

    architectures: ClassVar[tuple[str, ...]] = ("encoder-decoder", "gru")
    limit: ClassVar[Mask] = Causal()

    @property
    def has_source(self) -> bool:
        return True

    def _rows(self, question):
        answer = self.answer(question)
        return np.concatenate([[self.separator], answer[:-1]]), answer, np.ones(len(answer), dtype=bool)

    def symbols_of_slots(self, length: int):
        return np.concatenate([np.arange(length), [-1], self.answer(np.arange(length))[:-1]])
