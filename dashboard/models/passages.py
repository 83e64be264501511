"""Passages of a text: as they are typed and written into a link, and as long as one likes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from dashboard.models.cache import cached

if TYPE_CHECKING:
    from dashboard.models.model import Model
    from transformer.analysis.accuracy.surprise import Surprise
    from transformer.tasks import Question, Task
    from transformer.text.task import Text


LONGEST_READ = 160
"""Tokens of a passage that is read for its loss; those before it in the model's window lead up to it."""
LENGTHS = (2, 4, 8, 16, 24, 32, 40, 64, 96, 128, 192, 256, 384, 512)
"""How long a passage is offered, in tokens; as far as the model reads."""
SIGNS = {"↵": "\n", "␣": " ", "⇥": "\t"}
"""What a token is shown by, and may be typed by as well."""


def in_a_line(passage: str) -> str:
    """A passage for a field of one line, and for a link: its line ends as signs, and without what no link holds."""
    line = passage.replace("\n", "↵").replace("\t", "⇥")
    return "".join(letter for letter in line if letter.isprintable() or letter.isspace())


def as_typed(line: str) -> str:
    """The text that a line means: what `in_a_line` was given."""
    for sign, meant in SIGNS.items():
        line = line.replace(sign, meant)
    return line


def parsed(task: Task, typed: str) -> Question:
    """What is typed, or stands in a link, as the task's tokens. Raises ValueError with a sentence."""
    return task.parse(typed if task.lawful else as_typed(typed))


def in_link(task: Task, typed: str) -> str:
    """What is typed as it stands in a link."""
    return " ".join(typed.lower().split()) if task.lawful else in_a_line(as_typed(typed))


def known(task: Task) -> str:
    """ "9,790 words", "10 symbols": what a model knows. ⟨unk⟩, which stands for any other word, is not counted."""
    return f"{task.symbols:,} symbols" if task.lawful else f"{task.symbols - 1:,} {cast('Text', task).split}"


def sayable(task: Task) -> str:
    """All between which a model chooses: what it knows, and the tokens that stand in no text."""
    return f"the {known(task)} it knows, {'' if task.lawful else '⟨unk⟩, '}SEP and padding"


def lengths(most: int, present: int) -> list[int]:
    """The lengths that are offered: the present one and the model's longest among them."""
    return sorted({length for length in LENGTHS if length < most} | {most, present})


def around(parts: Sequence[np.ndarray], passage: np.ndarray, length: int) -> np.ndarray | None:
    """The passage made longer or shorter where it stands in one of the parts; None where it stands nowhere.

    It keeps its beginning as far as the part goes on, and else begins earlier.
    """
    if length <= len(passage):
        return passage[:length]
    for part in parts:
        if len(part) < length:
            continue
        places = np.flatnonzero(part[: len(part) - len(passage) + 1] == passage[0])
        for place in places.tolist():
            if np.array_equal(part[place : place + len(passage)], passage):
                start = min(place, len(part) - length)
                return part[start : start + length]
    return None


def held_out(task: Text, work: int, place: int) -> tuple[Question, int, int]:
    """A passage of a work that was held out, both counted from 1: its tokens, and how many only lead up to it.

    And the last place at which one can begin.
    """
    stretch = task.known.held_out[work - 1]
    shown = min(LONGEST_READ, max(1, task.length // 2), len(stretch))
    before = min(task.length, len(stretch)) - shown
    return stretch[place - 1 :][: before + shown], before, len(stretch) - shown - before + 1


@cached(32)
def surprise(model: Model, passage: Question, before: int) -> Surprise:
    """What each token of a passage cost it, but for those `before` it that lead up to it."""
    from transformer.analysis.accuracy.surprise import surprise

    return surprise(model.network(), cast("Text", model.task), passage, before)
