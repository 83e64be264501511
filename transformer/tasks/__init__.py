"""Tasks: sequences with a law, and the truth about what can be known of them.

A task samples its own data (numpy, no PyTorch), states its law (`answer`), its vocabulary, its chance level and its
loss floor, and says for any information flow how accurate a perfect predictor could be at each position (`ceiling`).

Words. A *question* x1..xn is drawn at random; the *answer* y1..yn follows from it. The model reads *slots* (a source,
if it has an encoder and a decoder, then its tokens) and has one *target* at each token. Lengths and indices are
counted in symbols and slots, from 0; what is shown to people counts from 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from transformer.foundation.registry import Registry
from transformer.masks import Mask

if TYPE_CHECKING:
    from transformer.config import TaskConfig


PI = "31415926535897932384626433832795"
ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
Question = Int[np.ndarray, "length"]
Questions = list[Int[np.ndarray, "_length"]]
"""Each has its own length."""


@dataclass(frozen=True)
class Batch:
    """Sequences ready for a model. Padding stands at the end and is never a target."""

    tokens: Int[np.ndarray, "batch position"]
    targets: Int[np.ndarray, "batch position"]
    is_answer: Bool[np.ndarray, "batch position"]
    """Does the target follow from the question?"""
    is_target: Bool[np.ndarray, "batch position"]
    """Is there a target here at all? False on padding."""
    source: Int[np.ndarray, "batch source"] | None = None

    def part(self, sequences: slice) -> Batch:
        """Some of its sequences."""
        source = None if self.source is None else self.source[sequences]
        return Batch(
            self.tokens[sequences],
            self.targets[sequences],
            self.is_answer[sequences],
            self.is_target[sequences],
            source,
        )


@dataclass(frozen=True)
class Ceiling:
    """The best that any predictor can do with the information it is given, target by target."""

    accuracy: Float[np.ndarray, "target"]
    """Largest probability of being right."""
    nats: Float[np.ndarray, "target"]
    """Smallest expected cross-entropy, in nats."""


@dataclass(frozen=True)
class Task(ABC):
    """A law over sequences of symbols. One subclass a file in this folder."""

    length: int = 8
    min_length: int | None = None
    symbols: int = 10

    law: ClassVar[str]
    """The law in one sentence."""
    lawful: ClassVar[bool] = True
    """Is there a law, by which the answer follows from the question? A text has none that anybody knows."""
    architectures: ClassVar[tuple[str, ...]]
    """Which architectures fit; the first is the task's own."""
    limit: ClassVar[Mask]
    """What a query may see without being told its own answer."""

    @classmethod
    def of(cls, config: TaskConfig) -> Task:
        """The task that a config describes."""
        return cls(length=config.length, min_length=config.min_length, symbols=config.symbols)

    # --- the law and its words

    @abstractmethod
    def answer(self, question: Question) -> Question:
        """y from x: the law itself, for one question of any length."""

    @property
    def name(self) -> str:
        return type(self).__module__.rsplit(".", 1)[-1].replace("_", "-")

    @property
    def chance(self) -> float:
        """Accuracy of guessing a symbol."""
        return 1 / self.symbols

    @property
    def chance_loss(self) -> float:
        """Cross-entropy of guessing a symbol, in nats: ln(symbols)."""
        return math.log(self.symbols)

    @property
    def separator(self) -> int:
        return self.symbols

    @property
    def padding(self) -> int:
        return self.symbols + 1

    @property
    def d_vocab(self) -> int:
        return self.symbols + 2

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """What each token is called; its index is the token."""
        return (*ALPHABET[: self.symbols], "SEP", "PAD")

    @property
    def lengths(self) -> range:
        return range(self.min_length or self.length, self.length + 1)

    @property
    @abstractmethod
    def n_ctx(self) -> int:
        """Tokens in the longest sequence that the model reads."""

    def parse(self, text: str) -> Question:
        """Read a typed question such as "3 1 4" or "314". Raises ValueError with a sentence for what cannot be used."""
        characters = [c for c in text.lower() if not c.isspace() and c not in ",;"]
        allowed = self.vocabulary[: self.symbols]
        wrong = next((c for c in characters if c not in allowed), None)
        span = f"{allowed[0]} to {allowed[-1]}" if self.symbols <= 10 else f"0 to 9 and a to {allowed[-1]}"
        if wrong is not None:
            raise ValueError(f"“{wrong}” is not a symbol of this task: use {span}")
        if not 1 <= len(characters) <= self.length:
            raise ValueError(f"type 1 to {self.length} symbols ({span}), not {len(characters)}")
        return np.array([allowed.index(c) for c in characters], dtype=np.int64)

    def typed(self, question: Question) -> str:
        """A question as one would type it: what `parse` reads."""
        return " ".join(self.vocabulary[symbol] for symbol in question)

    @property
    def example(self) -> Question:
        """The question that stands for all: the digits of pi."""
        digits = np.array([int(digit) for digit in PI], dtype=np.int64)
        return np.resize(digits, self.length) % self.symbols

    # --- data

    def batch(self, rng: np.random.Generator, size: int, length: int | None = None) -> Batch:
        """`size` fresh sequences: symbols uniform and independent, lengths uniform over `lengths` unless given."""
        if length is None and len(self.lengths) > 1:
            sizes = rng.integers(self.lengths.start, self.lengths.stop, size)
            return self.encode([rng.integers(0, self.symbols, n) for n in sizes])
        return self.encode(list(rng.integers(0, self.symbols, (size, length or self.length))))

    def fresh(self, rng: np.random.Generator, size: int, length: int | None = None) -> Batch:
        """`size` sequences to measure on, which no training has seen; fewer where there are no more."""
        return self.batch(rng, size, length)

    def held_out(self) -> Batch:
        """Of a text, all that is held out. Raises TypeError for a law: there is no end of fresh sequences."""
        raise TypeError(f"the task {self.name} holds nothing out: it has a law")

    @property
    def surveyed(self) -> int:
        """Symbols in the sequences over which heads are averaged, unless it is said."""
        return self.length

    def draw(self, rng: np.random.Generator, size: int, length: int) -> Questions:
        """`size` questions of one length; fewer where there are no more."""
        return list(rng.integers(0, self.symbols, (size, length)))

    def encode(self, questions: Questions, pad_to: int | None = None) -> Batch:
        """Lay questions out as the model reads them, padded to the longest or to a question of `pad_to` symbols."""
        widest = max(max(len(q) for q in questions), pad_to or 0)
        rows = [self._rows(q) for q in questions]
        width = len(self._rows(np.zeros(widest, dtype=np.int64))[0])
        tokens = np.full((len(rows), width), self.padding, dtype=np.int64)
        targets, is_answer, is_target = tokens.copy(), np.zeros_like(tokens, bool), np.zeros_like(tokens, bool)
        for row, (read, predicted, determined) in enumerate(rows):
            tokens[row, : len(read)], targets[row, : len(read)] = read, predicted
            is_answer[row, : len(read)], is_target[row, : len(read)] = determined, True
        source = None
        if self.has_source:
            source = np.full((len(rows), widest), self.padding, dtype=np.int64)
            for row, question in enumerate(questions):
                source[row, : len(question)] = question
        return Batch(tokens, targets, is_answer, is_target, source)

    @property
    def has_source(self) -> bool:
        """Does the model read the question through an encoder of its own?"""
        return False

    @abstractmethod
    def _rows(
        self, question: Question
    ) -> tuple[Int[np.ndarray, "position"], Int[np.ndarray, "position"], Bool[np.ndarray, "position"]]:
        """Tokens, targets, and whether each target is determined, for one question."""

    # --- what can be known

    @abstractmethod
    def target_names(self, length: int) -> tuple[str, ...]:
        """What each target is called: x2 … SEP, y1 …"""

    @abstractmethod
    def groups(self, length: int) -> tuple[str, ...]:
        """The part each target belongs to: "first half", "separator" or "second half"."""

    def answers(self, length: int) -> Bool[np.ndarray, "target"]:
        """Which targets are the answer's."""
        return np.array([name.startswith("y") for name in self.target_names(length)])

    @abstractmethod
    def symbols_of_slots(self, length: int) -> Int[np.ndarray, "slot"]:
        """Which symbol of the question each slot (source, then tokens) carries; -1 where none."""

    @abstractmethod
    def symbols_of_targets(self, length: int) -> Int[np.ndarray, "target"]:
        """Which symbol of the question each target equals; -1 where its position alone decides."""

    def ceiling(self, reach: Bool[np.ndarray, "target slot"]) -> Ceiling:
        """The ceiling when the slots in `reach` can influence each target (`analysis.ceilings.reachable` computes it).

        Symbols are independent, so a target is known where a slot that carries its symbol arrives, or where its
        position alone decides, and is a guess elsewhere. The length of the sequence is taken as known.
        """
        length = self._length_of(reach.shape[0])
        slots, targets = self.symbols_of_slots(length), self.symbols_of_targets(length)
        arrives = (reach & (slots[None, :] == targets[:, None])).any(axis=1) | (targets < 0)
        return Ceiling(np.where(arrives, 1.0, self.chance), np.where(arrives, 0.0, self.chance_loss))

    def expected_keys(self, question: Question) -> Bool[np.ndarray, "query key"]:
        """Where a head that does the task looks: for each target of the answer, its symbol's place in the question.

        Keys are the source where there is one, the tokens elsewhere.
        """
        length = len(question)
        targets = self.symbols_of_targets(length)
        expected = self.answers(length)[:, None] & (targets[:, None] == np.arange(length)[None, :])
        keys = length if self.has_source else len(targets)
        return np.pad(expected, ((0, 0), (0, keys - length)))

    def loss_floor(self, prompt_weight: float, reach_of: dict[int, Bool[np.ndarray, "_target _slot"]]) -> float:
        """The smallest expected loss, in nats, that a predictor can reach, averaged as the training loss is.

        `reach_of` maps each of `lengths` to what can influence each target (see `ceiling`); targets that belong to the
        question weigh `prompt_weight`, those of the answer 1.
        """
        total = weight = 0.0
        for length in self.lengths:
            _, _, determined = self._rows(np.zeros(length, dtype=np.int64))
            weights = np.where(determined, 1.0, prompt_weight)
            nats = self.ceiling(reach_of[length]).nats + self._length_nats(length, reach_of[length])
            total, weight = total + float(weights @ nats), weight + float(weights.sum())
        return total / weight if weight else 0.0

    def _length_nats(self, length: int, reach: Bool[np.ndarray, "target slot"]) -> Float[np.ndarray, "target"]:
        """What each target costs beyond the ceiling because the length is not known beforehand."""
        return np.zeros(len(reach))

    def _length_of(self, n_targets: int) -> int:
        return n_targets


TASKS: Registry[Task] = Registry(
    Task,  # type: ignore[type-abstract]
    __name__,
    str(Path(__file__).parent),
)
