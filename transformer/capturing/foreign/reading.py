"""What a text becomes before a model reads it: tokens that it knows, as many as fit, each with its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
from jaxtyping import UInt8

from transformer.capturing.foreign.tokenizers import ForeignError, Tokenizer

Says = Literal["text", "pair", "picture", "tokens", "token pair"]
"""What a model reads: a text; the two texts of an encoder-decoder; a picture; without a tokenizer token numbers, or
those of both."""
MOST = 512
"""Positions of an input at most, whatever a model could read: what is kept of its heads grows with their square."""
MOST_CHARACTERS = 100 * MOST
"""Of a text that is cut into tokens; a longer one is refused before."""


@dataclass(frozen=True, eq=False)
class Given:
    """An input, ready for `capture(model, *given.args, **given.named)`."""

    args: tuple[Any, ...]
    named: dict[str, Any]
    tokens: tuple[int, ...]
    """What the model reads, in an encoder-decoder what its decoder reads; of a picture its positions, from 0."""
    names: tuple[str, ...]
    """What people read for each."""
    sources: tuple[str, ...] = ()
    """The same for what the encoder of an encoder-decoder reads."""
    separators: frozenset[int] = frozenset()
    """The tokens that are special and belong to no text."""
    picture: UInt8[np.ndarray, "row column 3"] | None = None
    """A picture in the size in which the model reads it."""


class Reader(Protocol):
    """What a model reads, and how that is made ready."""

    @property
    def says(self) -> Says: ...

    @property
    def longest(self) -> int:
        """Positions of an input at most."""

    @property
    def hint(self) -> str:
        """Why token numbers are typed and no text, and what to do to type one; empty where it is something else."""

    def given(self, text: str, second: str = "", picture: bytes | None = None) -> Given:
        """An input made ready. Raises ForeignError with a sentence."""

    def word(self, token: int) -> str:
        """One token as a person reads it."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of these tokens."""


@dataclass(frozen=True, eq=False)
class Texts:
    """One text, or token numbers."""

    tokenizer: Tokenizer
    size: int | None
    """How many tokens the model knows, where it can be told."""
    longest: int
    device: torch.device

    @property
    def says(self) -> Says:
        return self.tokenizer.says

    @property
    def hint(self) -> str:
        return self.tokenizer.hint

    def given(self, text: str, second: str = "", picture: bytes | None = None) -> Given:
        tokens = self.read(text)
        return Given((self.batch(tokens),), {}, tokens, self.names(tokens), separators=self.tokenizer.separators)

    def read(self, text: str) -> tuple[int, ...]:
        """The tokens of a text. Raises ForeignError where it is empty, too long, or beyond the vocabulary."""
        if not text.strip():
            raise ForeignError("There is nothing to read: the text is empty.")
        tokens = self.fitting(self.tokenizer.encode(self.bounded(text)))
        if not tokens:
            raise ForeignError("Its tokenizer makes no token of this text.")
        return tokens

    def bounded(self, text: str) -> str:
        """A text that is short enough to be cut into tokens. Raises ForeignError."""
        if len(text) > MOST_CHARACTERS:
            raise ForeignError(f"The text has {len(text):,} characters, and at most {self.longest} tokens fit.")
        return text

    def fitting(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """Tokens that the model knows, as many as fit. Raises ForeignError."""
        if len(tokens) > self.longest:
            raise ForeignError(f"There are {len(tokens)} tokens, and at most {self.longest} fit.")
        beyond = next((token for token in tokens if self.size is not None and not 0 <= token < self.size), None)
        if beyond is not None:
            raise ForeignError(f"The model knows the tokens 0 to {self.size - 1}, and {beyond} is none of them.")  # type: ignore[operator]
        return tuple(tokens)

    def batch(self, tokens: Sequence[int]) -> torch.Tensor:
        """One sequence [1, position], where the model is."""
        return torch.tensor([list(tokens)], device=self.device)

    def names(self, tokens: Sequence[int]) -> tuple[str, ...]:
        return tuple(map(self.word, tokens))

    def word(self, token: int) -> str:
        return self.tokenizer.word(token)

    def decode(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode(tokens)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The text that an encoder reads, and the one that its decoder reads, which may be empty."""

    texts: Texts
    start: int
    """The token that the decoder reads first."""

    @property
    def says(self) -> Says:
        return "pair" if self.texts.says == "text" else "token pair"

    @property
    def hint(self) -> str:
        return self.texts.hint

    @property
    def longest(self) -> int:
        return self.texts.longest

    def given(self, text: str, second: str = "", picture: bytes | None = None) -> Given:
        texts = self.texts
        source = texts.read(text)
        own = texts.tokenizer.encode(texts.bounded(second), bare=True) if second.strip() else []
        tokens = texts.fitting([self.start, *own])
        named = {"input_ids": texts.batch(source), "decoder_input_ids": texts.batch(tokens)}
        separators = texts.tokenizer.separators | {self.start}
        return Given((), named, tokens, texts.names(tokens), texts.names(source), separators)

    def word(self, token: int) -> str:
        return self.texts.word(token)

    def decode(self, tokens: Sequence[int]) -> str:
        return self.texts.decode(tokens)
