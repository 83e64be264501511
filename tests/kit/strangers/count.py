"""Counting as continuation: after the separator, say how often the first symbol occurs."""

from typing import ClassVar

import numpy as np

from transformer.tasks._layouts import Continuation


class Count(Continuation):
    """`[x1..xn, SEP, y1]`: one symbol, which no place of the question holds."""

    law: ClassVar[str] = "after SEP, how often the first symbol occurs"
    verb: ClassVar[str] = "counts the first symbol"

    def answer(self, question):
        return np.array([(question == question[0]).sum() % self.symbols])
