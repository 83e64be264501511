"""Reversal as translation: an encoder reads the sequence, a decoder says it backwards."""

from typing import ClassVar

from transformer.tasks._layouts import Translation


class ReverseTranslate(Translation):
    """The encoder-decoder's reversal: cross-attention carries it."""

    law: ClassVar[str] = "an encoder reads x, a decoder says it backwards: yᵢ = xₙ₊₁₋ᵢ"
    verb: ClassVar[str] = "reverses"
    aim: ClassVar[str] = "write them backwards"
    rearranges: ClassVar[bool] = True

    def answer(self, question):
        return question[::-1]
