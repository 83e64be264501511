"""Duplicating as translation: an encoder reads the sequence, a decoder says each symbol twice."""

from typing import ClassVar

import numpy as np

from transformer.tasks._layouts import Translation


class DuplicateTranslate(Translation):
    """An answer twice as long as its source."""

    law: ClassVar[str] = "an encoder reads x, a decoder says each symbol twice: y₂ᵢ₋₁ = y₂ᵢ = xᵢ"
    verb: ClassVar[str] = "doubles each symbol"
    rearranges: ClassVar[bool] = True

    def answer(self, question):
        return np.repeat(question, 2)
