"""Reversal as continuation: after the separator, say the sequence backwards."""

from typing import ClassVar

from transformer.tasks._layouts import Continuation


class Reverse(Continuation):
    """`[x1..xn, SEP, xn..x1]`: the first half cannot be predicted, the second can."""

    law: ClassVar[str] = "after SEP, the sequence again, backwards: yᵢ = xₙ₊₁₋ᵢ"
    verb: ClassVar[str] = "reverses"
    aim: ClassVar[str] = "write them backwards"
    parts: ClassVar[tuple[str, ...]] = ("first half", "second half")
    rearranges: ClassVar[bool] = True

    def answer(self, question):
        return question[::-1]
