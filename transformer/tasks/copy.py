"""Copying as continuation: after the separator, say the sequence again."""

from typing import ClassVar

from transformer.tasks._layouts import Continuation


class Copy(Continuation):
    """`[x1..xn, SEP, x1..xn]`: one fixed distance, so relative positions are enough."""

    law: ClassVar[str] = "after SEP, the sequence again: yᵢ = xᵢ"
    verb: ClassVar[str] = "copies"
    aim: ClassVar[str] = "write them again"
    parts: ClassVar[tuple[str, ...]] = ("first half", "second half")
    rearranges: ClassVar[bool] = True

    def answer(self, question):
        return question.copy()
