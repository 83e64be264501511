"""Reversal in place: position i must say the token of position n+1-i."""

from typing import ClassVar

from transformer.tasks._layouts import Aligned


class ReverseAligned(Aligned):
    """The encoder's reversal; under a causal mask only the second half can be known."""

    law: ClassVar[str] = "position i says the token at the mirrored position: yᵢ = xₙ₊₁₋ᵢ"
    verb: ClassVar[str] = "reverses"
    aim: ClassVar[str] = "write them backwards"
    rearranges: ClassVar[bool] = True

    def answer(self, question):
        return question[::-1]
