"""Duplicating as continuation: after the separator, say each symbol twice."""

from typing import ClassVar

import numpy as np

from transformer.tasks._layouts import Continuation


class Duplicate(Continuation):
    """`[x1..xn, SEP, x1, x1, x2, x2, ..xn]`: an answer twice as long as its question."""

    law: ClassVar[str] = "after SEP, each symbol twice: y₂ᵢ₋₁ = y₂ᵢ = xᵢ"
    verb: ClassVar[str] = "doubles each symbol"
    rearranges: ClassVar[bool] = True

    def answer(self, question):
        return np.repeat(question, 2)
