"""A lecture as it is written: a Markdown file, read into steps; what is wrong in it is named with its line.

A file begins with what the lecture is, then comes a step under each second-level heading:

    ---
    title: Masks: who may see whom
    minutes: 15
    language: en
    audience: whoever knows what attention is
    ---

    ## The second half, but not the first
    view: accuracy?run=reverse
    look: accuracy-bars
    controls: run, input
    claim: second_half > 0.99
    ask: Which half can it predict?
    choice: the first when first_half > 0.9
    choice: the second when second_half > 0.9

    Words with formulas, $x$, and with numbers of the view: {{ second_half :.2f }}.

    > What only the lecturer reads.

A number is never typed: it is an expression over the step's view (values.py), and how it is written stands after a
colon, as in Python's format strings. What is asked is covered until one has predicted it (questions.py): a `choice`, of
which one is true, a `number`, `bars` or `cells`; without any of them, some words. The words of a question and of its
choices may hold expressions, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dashboard.lectures.expressions import Expression
from dashboard.lectures.questions import BARS, CELLS, CHOICE, NUMBER, WORDS, Question
from dashboard.lectures.reading import (
    Mistake,
    Words,
    choice,
    expression,
    expressions_in,
    field,
    head,
    text_of,
    view_of,
    words_in,
    words_of,
)
from dashboard.models.cache import keyed_by_repr
from dashboard.view.link import View

ABOUT = ("title", "minutes", "language", "audience")
"""What a file says of its lecture, each once."""
LIMITS = {"minutes": (1, 240), "training": (1, 3600)}
"""What is a whole number, and its limits. The seconds of a training may be left out."""
ONCE, OFTEN = ("view", "look", "until", "controls", "ask", NUMBER, BARS, CELLS), ("claim", CHOICE)
"""What stands under the heading of a step: once at most, and as often as one likes."""
MOST_STEPS = 60
SIDEBAR = "sidebar"
"""What a step names among its controls to keep the sidebar."""


@keyed_by_repr
@dataclass(frozen=True)
class Step:
    """A view, and the words to it."""

    title: str
    line: int
    """Where its heading stands."""
    page: str
    """The address of the page it stands on."""
    view: View
    look: str
    """The key of the element that is marked; empty is none."""
    until: str
    """The key of the last element that is shown: the page ends there. Empty shows all of it."""
    controls: tuple[str, ...]
    """The fields of the view whose controls stay, and SIDEBAR."""
    prose: Words
    """The words, and between them the numbers."""
    notes: Words
    """What only the lecturer reads, its numbers as well."""
    claims: tuple[Expression, ...]
    """What the words take for granted of the view: each is to be true."""
    question: Question | None = None
    """What is asked before the view is shown."""

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Those whose values are read in its words, its notes and its question."""
        asked = () if self.question is None else self.question.expressions
        return (*expressions_in(self.prose), *expressions_in(self.notes), *asked)


@dataclass(frozen=True)
class Lecture:
    """Steps in their order."""

    name: str
    """How links call it: the file's name without its ending."""
    title: str
    minutes: int
    language: str
    audience: str
    steps: tuple[Step, ...]
    training: int = 60
    """Seconds that a training may take; then a stored film plays in its place."""

    def after(self, at: int, presses: int) -> int:
        """The step, counted from 1, to which so many presses of “Next” lead from step `at`: none passes a question."""
        last = len(self.steps)
        asking = (number for number in range(at + 1, last) if self.steps[number - 1].question is not None)
        return min(at + presses, next(asking, last))


def load(path: Path) -> Lecture:
    """Read a lecture. Raises Mistake for what cannot be used, OSError where there is no such file."""
    return read(path.stem, text_of(path, "a lecture"))


def read(name: str, text: str) -> Lecture:
    """Read the text of a lecture. Raises Mistake."""
    lines = text.splitlines()
    about, body = _about(lines)
    starts = [number for number in range(body, len(lines)) if lines[number].startswith("## ")]
    for number in range(body, starts[0] if starts else len(lines)):
        if lines[number].strip():
            raise Mistake(number + 1, "before the first step (a line that begins with “## ”) no words can stand")
    if not starts:
        raise Mistake(len(lines) or 1, "there is no step: no line begins with “## ”")
    if len(starts) > MOST_STEPS:
        raise Mistake(starts[MOST_STEPS] + 1, f"a lecture has at most {MOST_STEPS} steps")
    ends = [*starts[1:], len(lines)]
    return Lecture(
        name=name,
        **about,
        steps=tuple(_step(lines[start:end], start + 1) for start, end in zip(starts, ends, strict=True)),
    )


def _about(lines: list[str]) -> tuple[dict, int]:
    """What the lecture is, and the number of the line after that, from 0."""
    written, end = head(lines, "what the lecture is")
    found: dict[str, object] = {}
    for key, value, line in written:
        if key not in (*ABOUT, *LIMITS):
            raise Mistake(line, f"“{key[:40]}” is not among {', '.join(dict.fromkeys((*ABOUT, *LIMITS)))}")
        if key in found:
            raise Mistake(line, f"“{key}” stands here a second time")
        found[key] = value
        if key in LIMITS:
            least, most = LIMITS[key]
            if not (value.isascii() and value.isdigit() and least <= int(value[:6]) <= most):
                raise Mistake(line, f"{key} is a whole number from {least} to {most}, not “{value[:40]}”")
            found[key] = int(value)
    missing = [key for key in ABOUT if not found.get(key)]
    if missing:
        raise Mistake(end, f"there is no {' and no '.join(missing)}")
    return found, end


def _step(lines: list[str], first: int) -> Step:
    """A step from its heading to the next; `first` is the heading's line, from 1."""
    title = lines[0].removeprefix("## ").strip()
    if not title:
        raise Mistake(first, "the step has no heading")
    fields: dict[str, tuple[str, int]] = {}
    claims: list[Expression] = []
    choices: list[tuple[Words, Expression]] = []
    rest = 1
    while rest < len(lines) and lines[rest].strip():
        number = first + rest
        key, value = field(lines[rest], number)
        if key == CHOICE:
            said, when = choice(value, number)
            choices.append((words_in(said, number, typed=True), when))
        elif key in OFTEN:
            claims.append(expression(value, number))
        elif key not in ONCE:
            raise Mistake(number, f"“{key[:40]}” is not among {', '.join((*ONCE, *OFTEN))}")
        elif key in fields:
            raise Mistake(number, f"“{key}” stands here a second time")
        else:
            fields[key] = (value, number)
        rest += 1
    if "view" not in fields:
        raise Mistake(first, f"the step “{title[:40]}” names no view")
    page, view = view_of(*fields["view"])
    words, notes = words_of(lines[rest:], first + rest)
    if not words:
        raise Mistake(first, f"the step “{title[:40]}” has no words")
    return Step(
        title=title,
        line=first,
        page=page,
        view=view,
        look=fields.get("look", ("", 0))[0],
        until=fields.get("until", ("", 0))[0],
        controls=tuple(name.strip() for name in fields.get("controls", ("", 0))[0].split(",") if name.strip()),
        prose=words,
        notes=notes,
        claims=tuple(claims),
        question=_question(fields, choices, first),
    )


def _question(
    fields: Mapping[str, tuple[str, int]], choices: Sequence[tuple[Words, Expression]], first: int
) -> Question | None:
    """What a step asks, if it does; `first` is its heading's line."""
    kinds = [kind for kind in (NUMBER, BARS, CELLS) if kind in fields] + [CHOICE] * bool(choices)
    if "ask" not in fields:
        if kinds:
            raise Mistake(first, f"“{kinds[0]}” answers nothing: there is no line “ask”")
        return None
    text, line = fields["ask"]
    if not text:
        raise Mistake(line, "“ask” asks nothing")
    words = words_in(text, line)
    if len(kinds) > 1:
        raise Mistake(line, f"a step asks for one thing, not for {' and '.join(kinds)}")
    kind = kinds[0] if kinds else WORDS
    if kind == CHOICE:
        if len(choices) < 2:
            raise Mistake(line, "one can choose among two at least")
        return Question(words, kind, choices=tuple(choices), line=line)
    return Question(words, kind, expression(*fields[kind]) if kind != WORDS else None, line=line)
