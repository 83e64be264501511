"""Sorting as continuation: after the separator, say the symbols in ascending order."""

from typing import ClassVar

import numpy as np

from transformer.tasks import Continuation


class Sort(Continuation):
    """`[x1..xn, SEP, sorted x]`: every answer needs all of the question."""

    law: ClassVar[str] = "after SEP, the symbols in ascending order"

    def answer(self, question):
        return np.sort(question)
