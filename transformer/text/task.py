"""The task of reading: after each token of a text, say the next one. Nobody knows its law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from transformer.foundation.foreign import shortened
from transformer.masks import Mask
from transformer.masks.causal import Causal
from transformer.tasks import Batch, Ceiling, Task
from transformer.tasks._layouts import begun_with, in_halves
from transformer.text import shelf
from transformer.text.corpus import Excerpt, TextError, windows

SURVEYED = 64
"""Tokens of the passages over which heads are averaged."""
EXAMPLE = 40
"""Tokens of the passage that stands for all."""


@dataclass(frozen=True)
class Text(Task):
    """`[SEP, x1..xn-1]` read one token at a time, each target the next token of a text.

    A *question* is a passage, and so is its answer. Each window of the text begins with SEP, wherever it was cut out.
    """

    text: str = ""
    """The text's key."""
    split: str = "words"
    min_count: int = 1

    law: ClassVar[str] = "after each token, the next one of the text"
    verb: ClassVar[str] = "reads"
    parts: ClassVar[tuple[str, ...]] = ("first half", "second half")
    lawful: ClassVar[bool] = False
    rearranges: ClassVar[bool] = True
    architectures: ClassVar[tuple[str, ...]] = ("decoder",)
    limit: ClassVar[Mask] = Causal()

    @classmethod
    def of(cls, config) -> Text:
        """The task that a config describes. Raises TextError where its text is not here."""
        known = shelf.excerpt(config.text, config.split, config.min_count)
        if not len(known.windows(config.length)):
            raise TextError(
                f"the held-out part of {shortened(config.text)} is shorter than {config.length} tokens: "
                "choose a shorter length"
            )
        return cls(
            length=config.length,
            symbols=len(known.vocabulary.tokens) + 1,
            text=config.text,
            split=config.split,
            min_count=config.min_count,
        )

    @property
    def name(self) -> str:
        return "text"

    @property
    def known(self) -> Excerpt:
        """The vocabulary, and some of what was held out."""
        return shelf.excerpt(self.text, self.split, self.min_count)

    def answer(self, question):
        """The passage itself: what comes next is what stood there."""
        return question

    @property
    def chance(self) -> float:
        """How often the commonest token is right: a guess of somebody who reads nothing."""
        return float(self.known.probabilities.max())

    @property
    def chance_loss(self) -> float:
        """The entropy of the counts, in nats: the best that can be done without reading."""
        p = self.known.probabilities[self.known.probabilities > 0]
        return float(-(p * np.log(p)).sum())

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return _vocabulary(self)

    @property
    def lengths(self) -> range:
        """Every beginning of a window is read on the way: it is trained on them all."""
        return range(1, self.length + 1)

    @property
    def n_ctx(self) -> int:
        return self.length

    def parse(self, text: str):
        """The tokens of a typed passage; a word that it does not know is the unknown token. Raises ValueError."""
        indices = self.known.vocabulary.encode(text)
        if not 1 <= len(indices) <= self.length:
            raise ValueError(f"type 1 to {self.length} tokens, not {len(indices)}")
        return indices

    def begun(self, prompt: str) -> list[int]:
        """What a model reads before it goes on with a prompt, of any length: SEP, as every window, and the prompt."""
        return [self.separator, *self.known.vocabulary.encode(prompt).tolist()]

    def piece(self, token: int) -> str:
        """A token as it stands in the text; SEP and padding stand in none."""
        return self.known.vocabulary.decode([token]) if token < self.separator else ""

    @property
    def unsayable(self) -> tuple[int, ...]:
        """The tokens that stand in no text: what is unknown has no spelling, and SEP comes before all texts."""
        return self.known.vocabulary.unknown, self.separator

    def typed(self, question) -> str:
        return self.known.vocabulary.decode(int(index) for index in question)

    @property
    def example(self):
        """The beginning of the excerpt, from its second line on."""
        stretch, vocabulary = self.known.held_out[0], self.known.vocabulary
        start = next((i + 1 for i, index in enumerate(stretch[:200]) if "↵" in vocabulary.shown[index]), 0)
        return stretch[start : start + min(EXAMPLE, self.length)]

    # --- data

    def batch(self, rng, size, length=None, pad_to=None):
        """`size` windows of the works that are learned from, none of them twice in a batch; all, if fewer."""
        return self.encode(_some(self._to_learn(length or self.length), rng, size), pad_to)

    def fresh(self, rng, size, length=None) -> Batch:
        """Windows of the excerpt; no more than there are."""
        return self.encode(self.draw(rng, size, length or self.length))

    def held_out(self) -> Batch:
        """All works that are held out, window after window; of the excerpt, where the text is not here."""
        try:
            works = shelf.corpus(self.text, self.split, self.min_count).held_out
        except TextError:
            works = self.known.held_out
        return self.encode(list(windows(works, self.length, all_read=True)))

    @property
    def surveyed(self) -> int:
        return min(self.length, SURVEYED)

    def draw(self, rng, size, length):
        return _in_turns(self.known.windows(length), rng, size)

    def _to_learn(self, length: int) -> np.ndarray:
        return _windows(self.text, self.split, self.min_count, length)

    def _layout(self, questions, answers):
        return begun_with(self.separator, answers), answers, np.ones(questions.shape[1], dtype=bool)

    # --- what can be known

    def target_names(self, length: int) -> tuple[str, ...]:
        return tuple(f"y{i}" for i in range(1, length + 1))

    def groups(self, length: int) -> tuple[str, ...]:
        return in_halves(self.parts, length)

    def symbols_of_slots(self, length: int):
        return np.arange(-1, length - 1)

    def symbols_of_targets(self, length: int):
        return np.arange(length)

    def expected_keys(self, question):
        """No token of a passage is the one to look at."""
        return np.zeros((len(question), len(question)), dtype=bool)

    def ceiling(self, reach):
        """1 where a target can see itself; what reading the tokens before it is worth, nobody knows: nan."""
        told = super().ceiling(reach).accuracy == 1
        return Ceiling.of(np.where(told, 1.0, math.nan), np.where(told, 0.0, math.nan))


def _some(found: np.ndarray, rng: np.random.Generator, size: int) -> list[np.ndarray]:
    """So many of the rows, each at most once while there are enough of them in any case."""
    return [found[i] for i in rng.permutation(len(found))[:size]]


def _in_turns(found: np.ndarray, rng: np.random.Generator, size: int) -> list[np.ndarray]:
    """So many of the rows, none twice, drawn two neighbours at a time: as many that begin at one turn of words and
    blanks as at the other, or what a few windows cost would hang on how many began with a word."""
    couples = 2 * rng.permutation(-(-len(found) // 2))[:, None] + [0, 1]
    drawn = rng.permuted(couples, axis=1).ravel()
    return [found[i] for i in drawn[drawn < len(found)][:size]]


@lru_cache(maxsize=8)
def _windows(text: str, split: str, min_count: int, length: int) -> np.ndarray:
    found = windows(shelf.corpus(text, split, min_count).train, length)
    if not len(found):
        raise TextError(f"no training work of {shortened(text)} has {length} tokens: choose a shorter length")
    return found


@lru_cache(maxsize=8)
def _vocabulary(task: Text) -> tuple[str, ...]:
    return (*task.known.vocabulary.shown, "SEP", "PAD")
