"""Wishes: edits that are written down before it is known what they are made on, and become edits when it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor

from transformer.edits.base import Edit, EditError, HeadEdit
from transformer.edits.heads import Patch, PatchHead
from transformer.edits.patterns import ForcePattern
from transformer.network import Network
from transformer.tasks import Question, Task

LONGEST = 40
"""Letters of a passage that are repeated where an edit is named."""


def _nowhere(*_: object) -> Tensor:
    raise EditError("there is no other input to take from here")


def _never(step: int) -> Network:
    raise EditError(f"there are no weights of step {step} to take from here")


@dataclass(frozen=True, eq=False)
class Occasion:
    """What wishes are resolved for: a task, the length of its questions, and where they may look."""

    task: Task
    length: int
    question: Question | None = None
    """The one that is asked, where it is one."""
    look: Callable[[Question, str], Tensor] = _nowhere
    """What the edited model has at a site, [1, …], when it reads a question and its right answer. Raises EditError."""
    at_step: Callable[[int], Network] = _never
    """The edited model as it was at a step of its training. Raises EditError."""


@dataclass(frozen=True)
class Wish(HeadEdit):
    """An edit of one head that `resolved` makes of it."""

    @abstractmethod
    def resolved(self, occasion: Occasion) -> Edit:
        """The edit itself. Raises EditError where it cannot be had."""

    def apply(self, value: Tensor) -> Tensor:
        raise EditError(f"{self.words}: it must be resolved first")


@dataclass(frozen=True)
class ExpectPattern(Wish):
    """Let a head look at the key that holds the token to be said."""

    kind: ClassVar[str] = "expected"

    def resolved(self, occasion: Occasion) -> ForcePattern:
        """The pattern itself. Raises EditError where no key is right, or another for each question, as in sorting."""
        task, length = occasion.task, occasion.length
        if not task.lawful:
            raise EditError("in a text no key is the one to look at: paint one")
        up, down = np.arange(length) % task.symbols, np.arange(length)[::-1] % task.symbols
        expected = task.expected_keys(up)
        if not np.array_equal(expected, task.expected_keys(down)):
            raise EditError(f"in the task {task.name} the expected key is another for each question: paint one")
        return ForcePattern.of(expected, self.site, self.head, kind=self.kind)

    @property
    def words(self) -> str:
        return f"{self.name} looking at the expected key"


@dataclass(frozen=True)
class PatchInput(Wish):
    """Let a head hand on what it found in another input of the same length and its right answer.

    Of many sequences, each is handed the same: what the head found in that one input.
    """

    kind: ClassVar[str] = "patch-input"
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
            raise EditError(f"{self.words}: that input has {len(question)} {unit}, and here are {occasion.length}")
        if occasion.question is not None and np.array_equal(question, occasion.question):
            raise EditError(f"{self.words}: that is the input which is asked already; choose another")
        return Patch.of(self.site, occasion.look(question, self.site), head=self.head)

    @property
    def words(self) -> str:
        shown = " ".join(self.typed.split())
        return f"{self.name} as in input {shown if len(shown) <= LONGEST else f'{shown[: LONGEST - 1]}…'}"


@dataclass(frozen=True)
class PatchStep(Wish):
    """Let a head hand on what it found in the same tokens at another step of the training."""

    kind: ClassVar[str] = "patch-step"
    step: int

    def resolved(self, occasion: Occasion) -> PatchHead:
        """The patch. Raises EditError where no weights of that step are kept, and where it is the present one."""
        return PatchHead(self.site, self.head, occasion.at_step(self.step))

    @property
    def words(self) -> str:
        return f"{self.name} as at step {self.step}"


def resolve(edits: tuple[Edit, ...], occasion: Occasion) -> tuple[Edit, ...]:
    """The edits, with every wish among them resolved."""
    return tuple(edit.resolved(occasion) if isinstance(edit, Wish) else edit for edit in edits)
