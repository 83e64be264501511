"""An exercise as it is written: a Markdown file, read into a view to begin with, words, a hint and goals.

    ---
    title: Break it behind its own back
    order: 40
    view: edits?run=reverse
    goal: there is one edit when edits == 1
    goal: it is right in less than half of the second half when edited("second half") < 0.5
    ---

    What is to be reached, with formulas, $x$, and numbers of the first view: {{ second_half :.2f }}.

    > The hint, shown to whoever asks for it.

A goal is an expression over the reader's view (values.py). The exercise is solved as soon as all of them are true, on
whatever page that is seen. What a goal says stands before its last "when".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.lectures.expressions import Expression
from dashboard.lectures.reading import Mistake, Words, choice, head, text_of, view_of, words_of
from dashboard.models.cache import keyed_by_repr
from dashboard.view.link import View

ONCE = ("title", "order", "view")
GOAL = "goal"
MOST_GOALS, LAST = 8, 999


@keyed_by_repr
@dataclass(frozen=True)
class Goal:
    """One thing that is to be reached: what it says, and when that is true."""

    words: str
    met: Expression


@dataclass(frozen=True)
class Exercise:
    """What is to be reached, from which view, and how one knows that it is."""

    name: str
    """How links call it: the file's name without its ending."""
    title: str
    order: int
    """Its place in the list: the least comes first."""
    page: str
    """The address of the page it begins on."""
    view: View
    """The view it begins with; no goal of it may be reached there by all of them."""
    goals: tuple[Goal, ...]
    words: Words
    hint: Words


@dataclass(frozen=True)
class Reached:
    """A goal in a view: is it reached, and what its left side comes to, where it compares a number or a text."""

    words: str
    met: bool
    now: float | int | str | None
    why: str = ""
    """Why it cannot be measured in this view; empty where it can."""


def load(path: Path) -> Exercise:
    """Read an exercise. Raises Mistake for what cannot be used, OSError where there is no such file."""
    return read(path.stem, text_of(path, "an exercise"))


def read(name: str, text: str) -> Exercise:
    """Read the text of an exercise. Raises Mistake."""
    lines = text.splitlines()
    written, body = head(lines, "what the exercise is")
    found: dict[str, tuple[str, int]] = {}
    goals: list[Goal] = []
    for key, value, line in written:
        if key == GOAL:
            goals.append(Goal(*choice(value, line)))
        elif key not in ONCE:
            raise Mistake(line, f"“{key[:40]}” is not among {', '.join((*ONCE, GOAL))}")
        elif key in found:
            raise Mistake(line, f"“{key}” stands here a second time")
        else:
            found[key] = (value, line)
    missing = [key for key in ONCE if not found.get(key, ("", 0))[0]] + [GOAL] * (not goals)
    if missing:
        raise Mistake(body, f"there is no {' and no '.join(missing)}")
    if len(goals) > MOST_GOALS:
        raise Mistake(body, f"an exercise has at most {MOST_GOALS} goals")
    order, line = found["order"]
    if not (order.isascii() and order.isdigit() and int(order[:6]) <= LAST):
        raise Mistake(line, f"order is a whole number from 0 to {LAST}, not “{order[:40]}”")
    page, view = view_of(*found["view"])
    words, hint = words_of(lines[body:], body + 1, typed=True)
    if not words:
        raise Mistake(len(lines), "the exercise has no words")
    return Exercise(name, found["title"][0], int(order), page, view, tuple(goals), words, hint)


def reached(goal: Goal, values: Mapping[str, Any]) -> Reached:
    """How a goal stands in a view. What cannot be measured there is not reached."""
    try:
        met = goal.met.value(values) is True
        left = goal.met.left(values)
    except ValueError as error:
        return Reached(goal.words, False, None, str(error.__cause__ or error))
    return Reached(
        goal.words, met, left if isinstance(left, int | float | str) and not isinstance(left, bool) else None
    )
