"""How a text becomes token numbers, and what people read for each: by Hugging Face's, by one's own, or by none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from transformer.foundation.checks import UserError, reason
from transformer.foundation.foreign import shortened
from transformer.text.tokens import shown

LONGEST_NAME = 40
"""Characters of a token's name at most: a stranger's vocabulary may hold anything."""
PIECE, WORD, PART = "##", "▁", "\N{REPLACEMENT CHARACTER}"
"""How a piece of a word begins, and a word; and what stands for a part of a character."""


class ForeignError(UserError):
    """A sentence that says why a model of others cannot be opened, or cannot read what it is given."""

    def __init__(self, sentence: str, code: str = "") -> None:
        super().__init__(sentence)
        self.code = code
        """What to type instead, in Python, where that is more than a sentence holds."""
        if code:
            self.add_note(code)


class Tokenizer(Protocol):
    """Texts to token numbers and back."""

    @property
    def says(self) -> Literal["text", "tokens"]:
        """What is typed: a text, or token numbers."""

    @property
    def hint(self) -> str:
        """Why token numbers are typed and no text, and what to do to type one; empty where it is a text."""

    @property
    def separators(self) -> frozenset[int]:
        """The special tokens: what stands between texts, and belongs to none."""

    def encode(self, text: str, *, bare: bool = False) -> list[int]:
        """The tokens of a text; `bare` without the special ones that are put around it. Raises ForeignError."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of these tokens."""

    def word(self, token: int) -> str:
        """One token as a person reads it."""


@dataclass(frozen=True, eq=False)
class HuggingFaceTokenizer:
    """A tokenizer of the library transformers."""

    theirs: Any
    says: Literal["text"] = "text"
    hint: str = ""

    @property
    def separators(self) -> frozenset[int]:
        return frozenset(self.theirs.all_special_ids)

    def encode(self, text: str, *, bare: bool = False) -> list[int]:
        try:
            return list(self.theirs(text, add_special_tokens=not bare, verbose=False)["input_ids"])
        except Exception as error:  # a stranger's files may make it stumble over anything
            raise ForeignError(f"Its tokenizer cannot read this text: {reason(error)}.") from error

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self.theirs.decode(list(tokens), clean_up_tokenization_spaces=False))

    def word(self, token: int) -> str:
        """As text where it is text. Pieces of words and special tokens are as they are written, and so is a token that
        cannot be printed, or holds a part of a character: byte-level tokenizers have a sign for each byte."""
        written = self.theirs.convert_ids_to_tokens(token)
        if not isinstance(written, str):
            return _unnamed(token)
        text = written if written.startswith(PIECE) or token in self.separators else self.decode([token])
        if (not text and written != WORD) or PART in text or not shown(text).isprintable():
            text = written
        elif written.startswith(WORD) and not text.startswith(" "):
            text = f" {text}"
        return _name(text)


@dataclass(frozen=True, eq=False)
class PlainTokenizer:
    """Anything with `encode(text) -> list[int]` and `decode(list[int]) -> str`."""

    theirs: Any
    says: Literal["text"] = "text"
    hint: str = ""
    separators: frozenset[int] = frozenset()

    def encode(self, text: str, *, bare: bool = False) -> list[int]:
        try:
            return [int(token) for token in self.theirs.encode(text)]
        except Exception as error:  # it is somebody's own code
            raise ForeignError(f"Its tokenizer cannot read this text: {reason(error)}.") from error

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self.theirs.decode(list(tokens)))

    def word(self, token: int) -> str:
        """Its text; its number where it has none."""
        try:
            text = self.decode([token])
        except Exception:  # a model may have more tokens than its tokenizer
            return _unnamed(token)
        return _unnamed(token) if not text or PART in text else _name(text)


@dataclass(frozen=True)
class NumberTokenizer:
    """For a model without a tokenizer that can be used: its tokens are typed as numbers."""

    why: str = "It has no tokenizer"
    todo: str = ""
    """What to do to type a text, in sentences."""
    says: Literal["tokens"] = "tokens"
    separators: frozenset[int] = frozenset()

    @property
    def told(self) -> str:
        return f"{self.why}, so it is given token numbers, as in 3 1 4."

    @property
    def hint(self) -> str:
        return " ".join(filter(None, [self.told, self.todo]))

    def encode(self, text: str, *, bare: bool = False) -> list[int]:
        typed = text.replace(",", " ").split()
        wrong = next((each for each in typed if not (each.isascii() and each.isdecimal() and len(each) < 10)), None)
        if wrong is not None:
            raise ForeignError(f"“{shortened(wrong, LONGEST_NAME)}” is no token number. {self.told}")
        return [int(each) for each in typed]

    def decode(self, tokens: Sequence[int]) -> str:
        return " ".join(map(str, tokens))

    def word(self, token: int) -> str:
        return str(token)


def _name(text: str) -> str:
    """A token's text as a name: line ends and lone blanks as signs; a blank before a word stays one."""
    blank = " " if text.startswith(" ") and text.strip() else ""
    return shortened(blank + shown(text[len(blank) :]), LONGEST_NAME)


def _unnamed(token: int) -> str:
    return f"⟨{token}⟩"
