"""A text, cut as training cuts it: tokens, their numbers, windows, and what each place of a window sees. No PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dashboard.models.cache import cached
from transformer.masks.causal import Causal
from transformer.text.corpus import windows
from transformer.text.task import Text
from transformer.text.tokens import UNKNOWN, Vocabulary, split

WAYS = ("words", "characters")
"""Into what a text can be cut."""


@dataclass(frozen=True, eq=False)
class Cut:
    """A text in tokens and windows."""

    vocabulary: Vocabulary
    tokens: tuple[str, ...]
    """As they stand in the text."""
    ids: np.ndarray
    """int [token]: the place of each in the vocabulary, from 0."""
    places: np.ndarray
    """int [window, place]: which token of the text stands there, from 0."""
    read: np.ndarray
    """int [window, place]: the ids that a model reads; SEP first."""
    predicted: np.ndarray
    """int [window, place]: the ids that it has to predict."""
    separator: int
    length: int
    """Places of a window."""

    @property
    def unknown(self) -> np.ndarray:
        """bool [token]: is it in no vocabulary?"""
        found: np.ndarray = self.ids == self.vocabulary.unknown
        return found

    @cached_property
    def window(self) -> np.ndarray:
        """int [token]: the window in which each stands, from 0; -1 for one that is left out."""
        found = np.full(len(self.ids), -1)
        found[self.places] = np.arange(len(self.places))[:, None]
        return found

    @cached_property
    def seen(self) -> np.ndarray:
        """int [place]: the tokens of the text that a place sees under the causal mask. SEP is none of them."""
        found: np.ndarray = Causal().matrix(self.length).sum(axis=1) - 1
        return found

    @property
    def left_out(self) -> int:
        """Tokens that stand in no window."""
        return len(self.ids) - self.places.size

    def shown(self, token: int) -> str:
        """What an id is called where people read."""
        return "SEP" if token == self.separator else self.vocabulary.shown[token]


@cached(16)
def vocabulary_of(task: Text, by: str) -> Vocabulary:
    """The run's vocabulary; for the other way to cut one made by the same rule from the excerpt kept with the run."""
    known = task.known
    if by == known.vocabulary.by:
        return known.vocabulary
    return Vocabulary.of(split(excerpt(task), by), task.min_count, by)


def excerpt(task: Text) -> str:
    """The held-out text kept with a run, without its unknown tokens."""
    return "".join(map(task.typed, task.known.held_out)).replace(UNKNOWN, "")


@cached(64)
def cut(task: Text, text: str, by: str, length: int) -> Cut:
    """A text cut into tokens and these into windows, each laid out as the model reads it; by training's functions."""
    vocabulary = vocabulary_of(task, by)
    tokens, ids = tuple(vocabulary.cut(text)), vocabulary.encode(text)
    reader = replace(task, split=by, symbols=len(vocabulary.tokens) + 1)  # the token after the unknown one is SEP
    places = windows((np.arange(len(ids)),), length)
    read = predicted = np.zeros((0, length), dtype=np.int64)
    if len(places):
        batch = reader.encode(list(ids[places]))
        read, predicted = batch.tokens, batch.targets
    return Cut(vocabulary, tokens, ids, places, read, predicted, reader.separator, length)
