"""Tokens: a text cut into words or characters, and the vocabulary of those that are frequent enough."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int

UNKNOWN = "⟨unk⟩"
_SHOWN = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍"})


def split(text: str, by: str) -> list[str]:
    r"""Cut a text at its word boundaries (`re.split(r"\b", text)`), or into characters. Joined again it is the text.

    What stands between two words, a blank or a comma and a line's end, is one token: no word is lost and none made up.
    """
    return list(text) if by == "characters" else [token for token in re.split(r"\b", text) if token]


def shown(token: str) -> str:
    """A token where people read: blanks and line ends become signs that can be seen."""
    return token.translate(_SHOWN)


@dataclass(frozen=True)
class Vocabulary:
    """The tokens that are frequent enough, the commonest first; whatever else stands in a text is unknown."""

    tokens: tuple[str, ...]
    counts: tuple[int, ...]
    """How often each stood in the training text, and last how much of it was unknown."""
    by: str

    @classmethod
    def of(cls, tokens: Iterable[str], min_count: int, by: str) -> Vocabulary:
        """The tokens that occur at least `min_count` times; equally frequent ones in the order of their text."""
        counted = Counter(tokens)
        found = sorted(((-n, token) for token, n in counted.items() if n >= min_count))
        kept = tuple(token for _, token in found)
        counts = tuple(-n for n, _ in found)
        return cls(kept, (*counts, counted.total() - sum(counts)), by)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {token: index for index, token in enumerate(self.tokens)}

    @property
    def unknown(self) -> int:
        """The index of the unknown token, which follows the others."""
        return len(self.tokens)

    def encode(self, text: str) -> Int[np.ndarray, "token"]:
        """The indices of a text's tokens."""
        return self.encode_tokens(self.cut(text))

    def cut(self, text: str) -> list[str]:
        """The tokens of a text, as they stand in it; the sign of the unknown is one of them."""
        parts = [split(part, self.by) for part in text.split(UNKNOWN)]
        return [token for i, part in enumerate(parts) for token in ([UNKNOWN] if i else []) + part]

    def encode_tokens(self, tokens: list[str]) -> Int[np.ndarray, "token"]:
        unknown, index = self.unknown, self._index
        return np.array([index.get(token, unknown) for token in tokens], dtype=np.int64)

    def decode(self, indices: Iterable[int | np.integer]) -> str:
        """The text again; what was unknown stays unknown."""
        return "".join(self.tokens[index] if index < self.unknown else UNKNOWN for index in indices)

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """What each token is called where people read, the unknown one last."""
        return (*map(shown, self.tokens), UNKNOWN)
