"""Wishes: edits that are written down before it is known what they are made on, and become edits when it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from transformer.edits._base import Edit, EditError, HeadEdit
from transformer.network import Network
from transformer.tasks import Question, Task


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


def resolve(edits: tuple[Edit, ...], occasion: Occasion) -> tuple[Edit, ...]:
    """The edits, with every wish among them resolved."""
    return tuple(edit.resolved(occasion) if isinstance(edit, Wish) else edit for edit in edits)
