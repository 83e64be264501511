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
which one is true, a `number`, `bars` or `cells`; without any of them, some words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from dashboard.lectures.expressions import Expression, parsed
from dashboard.lectures.questions import BARS, CELLS, CHOICE, NUMBER, WORDS, Question
from dashboard.models.cache import keyed_by_repr
from dashboard.view.pages import PAGES
from dashboard.view.settings import Settings, from_query

ABOUT = ("title", "minutes", "language", "audience")
"""What a file says of its lecture, each once."""
LIMITS = {"minutes": (1, 240), "training": (1, 3600)}
"""What is a whole number, and its limits. The seconds of a training may be left out."""
ONCE, OFTEN = ("view", "look", "until", "controls", "ask", NUMBER, BARS, CELLS), ("claim", CHOICE)
"""What stands under the heading of a step: once at most, and as often as one likes."""
MOST_STEPS, MOST_BYTES = 60, 200_000
EXPRESSION = re.compile(r"\{\{(.+?)\}\}", re.DOTALL)
FORMULA = re.compile(r"\$[^$]+\$|`[^`]+`")
TYPED = re.compile(r"(?<![\w.])\d[\d.,]*")
SIDEBAR = "sidebar"
"""What a step names among its controls to keep the sidebar."""
OWN_FIELDS = ("lecture", "lecture_step", "exploring")
"""Fields of the view that a lecture sets by itself."""


class Mistake(ValueError):
    """Something in a file that cannot be used, and the line it stands in, counted from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line

    def __str__(self) -> str:
        return f"line {self.line}: {self.args[0]}"


@keyed_by_repr
@dataclass(frozen=True)
class Step:
    """A view, and the words to it."""

    title: str
    line: int
    """Where its heading stands."""
    page: str
    """The address of the page it stands on."""
    view: Settings
    look: str
    """The key of the element that is marked; empty is none."""
    until: str
    """The key of the last element that is shown: the page ends there. Empty shows all of it."""
    controls: tuple[str, ...]
    """The fields of the view whose controls stay, and SIDEBAR."""
    prose: tuple[str | Expression, ...]
    """The words, and between them the numbers."""
    notes: tuple[str | Expression, ...]
    """What only the lecturer reads, its numbers as well."""
    claims: tuple[Expression, ...]
    """What the words take for granted of the view: each is to be true."""
    question: Question | None = None
    """What is asked before the view is shown."""

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(each for each in (*self.prose, *self.notes) if isinstance(each, Expression))


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


def load(path: Path) -> Lecture:
    """Read a lecture. Raises Mistake for what cannot be used, OSError where there is no such file."""
    data = path.read_bytes()
    if len(data) > MOST_BYTES:
        raise Mistake(1, f"the file has {len(data):,} bytes; a lecture has at most {MOST_BYTES:,}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Mistake(data[: error.start].count(b"\n") + 1, "this is no UTF-8 text") from error
    return read(path.stem, text)


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
    if not lines or lines[0].strip() != "---":
        raise Mistake(1, "the file does not begin with a line “---”")
    try:
        end = next(number for number, line in enumerate(lines[1:], 1) if line.strip() == "---")
    except StopIteration:
        raise Mistake(len(lines), "the lines that say what the lecture is do not end with a line “---”") from None
    found: dict[str, object] = {}
    for number in range(1, end):
        if not lines[number].strip():
            continue
        key, value = _field(lines[number], number + 1)
        if key not in (*ABOUT, *LIMITS):
            raise Mistake(number + 1, f"“{key[:40]}” is not among {', '.join(dict.fromkeys((*ABOUT, *LIMITS)))}")
        if key in found:
            raise Mistake(number + 1, f"“{key}” stands here a second time")
        found[key] = value
        if key in LIMITS:
            least, most = LIMITS[key]
            if not (value.isascii() and value.isdigit() and least <= int(value[:6]) <= most):
                raise Mistake(number + 1, f"{key} is a whole number from {least} to {most}, not “{value[:40]}”")
            found[key] = int(value)
    missing = [key for key in ABOUT if not found.get(key)]
    if missing:
        raise Mistake(end + 1, f"there is no {' and no '.join(missing)}")
    return found, end + 1


def _field(line: str, number: int) -> tuple[str, str]:
    """The two sides of a line "name: value"."""
    name, colon, value = line.partition(":")
    if not colon:
        raise Mistake(number, f"“{line[:40]}” is no line of the form “name: value”")
    return name.strip(), value.strip()


def _step(lines: list[str], first: int) -> Step:
    """A step from its heading to the next; `first` is the heading's line, from 1."""
    title = lines[0].removeprefix("## ").strip()
    if not title:
        raise Mistake(first, "the step has no heading")
    fields: dict[str, tuple[str, int]] = {}
    claims: list[Expression] = []
    choices: list[tuple[str, Expression]] = []
    rest = 1
    while rest < len(lines) and lines[rest].strip():
        number = first + rest
        key, value = _field(lines[rest], number)
        if key == CHOICE:
            choices.append(_choice(value, number))
        elif key in OFTEN:
            claims.append(_expression(value, number))
        elif key not in ONCE:
            raise Mistake(number, f"“{key[:40]}” is not among {', '.join((*ONCE, *OFTEN))}")
        elif key in fields:
            raise Mistake(number, f"“{key}” stands here a second time")
        else:
            fields[key] = (value, number)
        rest += 1
    if "view" not in fields:
        raise Mistake(first, f"the step “{title[:40]}” names no view")
    page, view = _view(*fields["view"])
    words, notes = _words(lines[rest:], first + rest)
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


def _choice(text: str, line: int) -> tuple[str, Expression]:
    """What can be chosen, and what makes it right: "the second half when second_half > 0.9"."""
    said, when, true = text.rpartition(" when ")
    if not when or not said.strip():
        raise Mistake(line, f"“{text[:40]}” is no choice of the form “words when expression”")
    return said.strip(), _expression(true, line)


def _question(
    fields: Mapping[str, tuple[str, int]], choices: Sequence[tuple[str, Expression]], first: int
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
    _untyped(text, text, 0, line)
    if len(kinds) > 1:
        raise Mistake(line, f"a step asks for one thing, not for {' and '.join(kinds)}")
    kind = kinds[0] if kinds else WORDS
    if kind == CHOICE:
        if len(choices) < 2:
            raise Mistake(line, "one can choose among two at least")
        return Question(text, kind, choices=tuple(choices), line=line)
    return Question(text, kind, _expression(*fields[kind]) if kind != WORDS else None, line=line)


def _view(text: str, line: int) -> tuple[str, Settings]:
    """The page and the settings of a view, as a link has them: "heads?run=reverse&head=…"."""
    page, _, query = text.partition("?")
    page = page.strip().strip("/") or "overview"
    if page not in PAGES:
        raise Mistake(line, f"there is no page “{page[:40]}”; the pages are {', '.join(PAGES)}")
    try:
        pairs = dict(parse_qsl(query.strip(), keep_blank_values=True, strict_parsing=bool(query.strip())))
    except ValueError:
        raise Mistake(line, f"“{query[:40]}” is no query of a link, such as run=reverse&step=40") from None
    if taken := [name for name in OWN_FIELDS if name in pairs]:
        raise Mistake(line, f"“{taken[0]}” is set by the lecture itself")
    view, notices = from_query(pairs)
    if notices:
        raise Mistake(line, notices[0].removesuffix("."))
    return page, view


def _words(lines: list[str], first: int) -> tuple[tuple[str | Expression, ...], tuple[str | Expression, ...]]:
    """The words with the numbers between them, and the lecturer's notes: lines that begin with ">"."""
    words = "\n".join("" if line.startswith(">") else line for line in lines)
    notes = "\n".join(line[1:].strip() if line.startswith(">") else "" for line in lines)
    return _trimmed(_parts(words, first, typed=False)), _trimmed(_parts(notes, first, typed=True))


def _parts(text: str, first: int, typed: bool) -> list[str | Expression]:
    """Words and the expressions between them. Raises Mistake for a number that is typed, where none may be."""
    parts: list[str | Expression] = []
    end = 0
    for found in EXPRESSION.finditer(text):
        parts.append(text[end : found.start()] if typed else _untyped(text[end : found.start()], text, end, first))
        parts.append(_expression(found[1], first + text[: found.start()].count("\n")))
        end = found.end()
    return [*parts, text[end:] if typed else _untyped(text[end:], text, end, first)]


def _untyped(part: str, text: str, start: int, first: int) -> str:
    """Some words. Raises Mistake where a number is typed in them that is no part of a formula."""
    for found in TYPED.finditer(FORMULA.sub(lambda formula: " " * len(formula[0]), part)):
        line = first + text[: start + found.start()].count("\n")
        raise Mistake(line, f"the number {found[0].rstrip('.,')} is typed; write it as an expression, {{{{ … }}}}")
    return part


def _trimmed(words: list[str | Expression]) -> tuple[str | Expression, ...]:
    """The words without what is empty, nor blank lines at either end."""

    def kept() -> Iterator[str | Expression]:
        for place, each in enumerate(words):
            if isinstance(each, str):
                each = each.lstrip() if place == 0 else each
                each = each.rstrip() if place == len(words) - 1 else each
            if each:
                yield each

    return tuple(kept())


def _expression(text: str, line: int) -> Expression:
    try:
        return parsed(text, line)
    except ValueError as error:
        raise Mistake(line, str(error)) from None
