"""Let a head look at the key that its task expects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from transformer.edits import EditError, Occasion, Wish
from transformer.edits.patterns.painted import ForcePattern


@dataclass(frozen=True)
class ExpectPattern(Wish):
    """Let a head look at the key that holds the token to be said."""

    title: ClassVar[str] = "look at the expected key"
    order: ClassVar[int] = 70
    part: ClassVar[str] = "scores"

    def resolved(self, occasion: Occasion) -> ForcePattern:
        """The pattern itself. Raises EditError where no key is right, or another for each question, as in sorting."""
        task, length = occasion.task, occasion.length
        if not task.lawful:
            raise EditError("a text has no expected key to look at: paint one")
        up, down = np.arange(length) % task.symbols, np.arange(length)[::-1] % task.symbols
        expected = task.expected_keys(up)
        if not np.array_equal(expected, task.expected_keys(down)):
            raise EditError(f"in the task {task.name} the expected key differs from question to question: paint one")
        return ForcePattern.of(expected, self.site, self.head, where="at the expected key")

    @property
    def words(self) -> str:
        return f"{self.name} looking at the expected key"
