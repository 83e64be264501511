"""The three layouts in which a model reads a task: one token after the other, all at once, or through an encoder."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from jaxtyping import Int

from transformer.masks import Mask
from transformer.masks.causal import Causal
from transformer.masks.full import Full
from transformer.tasks import Task


def begun_with(separator: int, sequences: Int[np.ndarray, "row length"]) -> Int[np.ndarray, "row length"]:
    """Each sequence one place further on, behind a separator: what is read before each of its tokens is said."""
    return np.concatenate([np.full((len(sequences), 1), separator), sequences[:, :-1]], axis=1)


class Continuation(Task):
    """`[x1..xn, SEP, y1..yn]` read one token at a time, each target the next token."""

    architectures: ClassVar[tuple[str, ...]] = ("decoder", "encoder")
    limit: ClassVar[Mask] = Causal()

    @property
    def n_ctx(self) -> int:
        return 2 * self.length

    def _layout(self, questions, answers):
        length = questions.shape[1]
        sequences = np.concatenate([questions, np.full((len(questions), 1), self.separator), answers], axis=1)
        return sequences[:, :-1], sequences[:, 1:], np.arange(1, 2 * length + 1) > length

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

    def _layout(self, questions, answers):
        return questions, answers, np.ones(questions.shape[1], dtype=bool)

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

    def _layout(self, questions, answers):
        return begun_with(self.separator, answers), answers, np.ones(questions.shape[1], dtype=bool)

    def symbols_of_slots(self, length: int):
        return np.concatenate([np.arange(length), [-1], self.answer(np.arange(length))[:-1]])
