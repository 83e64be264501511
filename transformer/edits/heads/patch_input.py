"""Patch a head from another input."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import quote, unquote

import numpy as np

from transformer.edits import Edit, EditError, Occasion, Patch, Wish, tame

LONGEST = 40
"""Letters of a passage that are repeated where an edit is named."""
SYMBOLS = re.compile(r"[0-9a-z](_[0-9a-z]){0,499}", re.ASCII)
QUOTED = re.compile(r"=[\w.%-]{1,9000}", re.ASCII)
"""How the input is written: symbol by symbol, or a passage with percent signs as in an address."""


@dataclass(frozen=True)
class PatchInput(Wish):
    """Let a head hand on what it found in another input of the same length and its right answer.

    Of many sequences, each is handed the same: what the head found in that one input.
    """

    title: ClassVar[str] = "patch from another input"
    order: ClassVar[int] = 110
    needs: ClassVar[str] = "an input"
    sample: ClassVar[str] = "3_1_4"

    typed: str
    """The input as one would type it: a space between symbols, or a passage."""

    def resolved(self, occasion: Occasion) -> Patch:
        """The patch. Raises EditError for an input that is none, of another length, or the very one that is asked."""
        try:
            question = occasion.task.parse(self.typed)
        except ValueError as error:
            raise EditError(f"{self.name} cannot be patched from that input: {error}") from None
        if len(question) != occasion.length:
            unit = "symbols" if occasion.task.lawful else "tokens"
            raise EditError(f"{self.words}: that input has {len(question)} {unit}, and this one has {occasion.length}")
        if occasion.question is not None and np.array_equal(question, occasion.question):
            raise EditError(f"{self.words}: the model reads that input already. Choose another")
        return Patch.of(self.site, occasion.look(question, self.site), head=self.head)

    @property
    def words(self) -> str:
        shown = " ".join(self.typed.split())
        return f"{self.name} as in input {shown if len(shown) <= LONGEST else f'{shown[: LONGEST - 1]}…'}"

    def more(self) -> str:
        symbols = self.typed.replace(" ", "_")
        if SYMBOLS.fullmatch(symbols):
            return symbols
        return f"={quote(self.typed, safe='').replace('~', '%7E')}"  # with nothing that means something between edits

    @classmethod
    def of_text(cls, site: str, head: int, more: str) -> Edit:
        if QUOTED.fullmatch(more):
            return cls(site, head, unquote(more[1:]))
        if not SYMBOLS.fullmatch(more):
            raise EditError(
                f"patch-input needs an input such as {cls.sample}, or a passage as in =To%20be, not “{tame(more)}”"
            )
        return cls(site, head, more.replace("_", " "))
