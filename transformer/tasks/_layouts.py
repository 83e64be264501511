"""The three layouts in which a model reads a task: one token after the other, all at once, or through an encoder."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from jaxtyping import Int

from transformer.foundation.registry import PlugInError
from transformer.foundation.words import counted
from transformer.masks import Mask
from transformer.masks.causal import Causal
from transformer.masks.full import Full
from transformer.tasks import Task


def begun_with(separator: int, sequences: Int[np.ndarray, "row length"]) -> Int[np.ndarray, "row length"]:
    """Each sequence one place further on, behind a separator: what is read before each of its tokens is said."""
    return np.concatenate([np.full((len(sequences), 1), separator), sequences[:, :-1]], axis=1)


class _TwoParts(Task):
    """A task whose targets have two parts."""

    def __init_subclass__(cls, **more: object) -> None:
        super().__init_subclass__(**more)
        if len(getattr(cls, "parts", "")) != 2 and "groups" not in cls.__dict__:
            raise PlugInError(
                f"the task {cls.__name__} names {counted(len(cls.parts), 'part')}, and its layout has two"
            )


class Continuation(_TwoParts):
    """`[x1..xn, SEP, y1..ym]` read one token at a time, each target the next token."""

    parts: ClassVar[tuple[str, ...]] = ("question", "answer")
    architectures: ClassVar[tuple[str, ...]] = ("decoder", "encoder")
    limit: ClassVar[Mask] = Causal()

    @property
    def n_ctx(self) -> int:
        return self.count_targets(self.length)

    def count_targets(self, length: int) -> int:
        return length + self.answer_length(length)

    def _layout(self, questions, answers):
        length = questions.shape[1]
        sequences = np.concatenate([questions, np.full((len(questions), 1), self.separator), answers], axis=1)
        return sequences[:, :-1], sequences[:, 1:], np.arange(1, sequences.shape[1]) > length

    def target_names(self, length: int) -> tuple[str, ...]:
        return (*(f"x{i}" for i in range(2, length + 1)), "SEP", *_names(self.answer_length(length)))

    def groups(self, length: int) -> tuple[str, ...]:
        first, last = self.parts
        return (first,) * (length - 1) + ("separator",) + (last,) * self.answer_length(length)

    def symbols_of_slots(self, length: int):
        return np.concatenate([np.arange(length), [-1], self._symbols_of_answer(length)[:-1]])

    def symbols_of_targets(self, length: int):
        return np.concatenate([np.arange(1, length), [-1], self._symbols_of_answer(length)])


class Aligned(_TwoParts):
    """`x1..xn` read at once; the target at position i is yi. An answer is as long as its question."""

    parts: ClassVar[tuple[str, ...]] = ("first half", "second half")
    architectures: ClassVar[tuple[str, ...]] = ("encoder", "decoder")
    limit: ClassVar[Mask] = Full()

    @property
    def n_ctx(self) -> int:
        return self.length

    def _layout(self, questions, answers):
        return questions, answers, np.ones(questions.shape[1], dtype=bool)

    def target_names(self, length: int) -> tuple[str, ...]:
        return _names(length)

    def groups(self, length: int) -> tuple[str, ...]:
        return in_halves(self.parts, length)

    def symbols_of_slots(self, length: int):
        return np.arange(length)

    def symbols_of_targets(self, length: int):
        return self._symbols_of_answer(length)


class Translation(Task):
    """`x1..xn` read by an encoder; a decoder that starts from SEP says y1..ym, each target the next token."""

    parts: ClassVar[tuple[str, ...]] = ("answer",)
    architectures: ClassVar[tuple[str, ...]] = ("encoder-decoder", "gru")
    limit: ClassVar[Mask] = Causal()

    @property
    def n_ctx(self) -> int:
        return max(self.length, self.answer_length(self.length))

    @property
    def has_source(self) -> bool:
        return True

    def count_targets(self, length: int) -> int:
        return self.answer_length(length)

    def _layout(self, questions, answers):
        return begun_with(self.separator, answers), answers, np.ones(answers.shape[1], dtype=bool)

    def target_names(self, length: int) -> tuple[str, ...]:
        return _names(self.answer_length(length))

    def groups(self, length: int) -> tuple[str, ...]:
        return self.parts * self.answer_length(length)

    def symbols_of_slots(self, length: int):
        return np.concatenate([np.arange(length), [-1], self._symbols_of_answer(length)[:-1]])

    def symbols_of_targets(self, length: int):
        return self._symbols_of_answer(length)


def in_halves(parts: tuple[str, ...], targets: int) -> tuple[str, ...]:
    """The part of each target, where two parts stand for two halves; an odd target is in the second."""
    first, second = parts
    return (first,) * (targets // 2) + (second,) * (targets - targets // 2)


def _names(answers: int) -> tuple[str, ...]:
    return tuple(f"y{i}" for i in range(1, answers + 1))
