"""What the files of lectures and exercises have in common: their head, "name: value", words with numbers, a view.

What cannot be used is named with its line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl

from dashboard.lectures.expressions import Expression, Values, parsed
from dashboard.view.link import View, fault_of, from_query
from dashboard.view.pages import PAGES
from transformer.foundation.regular_files import open_file

Words = tuple[str | Expression, ...]
"""Some words, and between them the expressions whose values stand there."""
MOST_BYTES = 200_000
EXPRESSION = re.compile(r"\{\{(.+?)\}\}", re.DOTALL)
FORMULA = re.compile(r"\$[^$]+\$|`[^`]+`")
TYPED = re.compile(r"(?<![\w.])\d[\d.,]*")
OWN_FIELDS = ("lecture", "lecture_step", "exploring", "exercise")
"""Fields of the view that lectures and exercises set by themselves."""


MISSING = "–"
"""What stands in the words for a number that cannot be had."""


class Mistake(ValueError):
    """Something in a file that cannot be used, and the line it stands in, counted from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line

    def __str__(self) -> str:
        return f"line {self.line}: {self.args[0]}"


def text_of(path: Path, what: str) -> str:
    """The text of a file that is `what`, "a lecture". Raises Mistake, OSError where there is no such file."""
    with open_file(path) as file:
        data: bytes = file.read(MOST_BYTES + 1)
        size = os.fstat(file.fileno()).st_size
    if len(data) > MOST_BYTES:
        raise Mistake(1, f"the file has {size:,} bytes; {what} has at most {MOST_BYTES:,}")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Mistake(data[: error.start].count(b"\n") + 1, "this is no UTF-8 text") from error


def head(lines: list[str], what: str) -> tuple[list[tuple[str, str, int]], int]:
    """The lines "name: value" that a file begins with, each with its number, and the number of the line after them.

    That one counts from 0. `what` names what they speak of, "what the lecture is". Raises Mistake.
    """
    if not lines or lines[0].strip() != "---":
        raise Mistake(1, "the file does not begin with a line “---”")
    try:
        end = next(number for number, line in enumerate(lines[1:], 1) if line.strip() == "---")
    except StopIteration:
        raise Mistake(len(lines), f"the lines that say {what} do not end with a line “---”") from None
    written = [number for number in range(1, end) if lines[number].strip()]
    return [(*field(lines[number], number + 1), number + 1) for number in written], end + 1


def field(line: str, number: int) -> tuple[str, str]:
    """The two sides of a line "name: value"."""
    name, colon, value = line.partition(":")
    if not colon:
        raise Mistake(number, f"“{line[:40]}” is no line of the form “name: value”")
    return name.strip(), value.strip()


def choice(text: str, line: int) -> tuple[str, Expression]:
    """Words and what makes them true: "the second half when second_half > 0.9"."""
    said, when, true = text.rpartition(" when ")
    if not when or not said.strip():
        raise Mistake(line, f"“{text[:40]}” is not of the form “words when expression”")
    return said.strip(), expression(true, line)


def view_of(text: str, line: int) -> tuple[str, View]:
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
    for name, text in pairs.items():
        if fault := fault_of(name, text):
            raise Mistake(line, fault)
    return page, from_query(pairs)[0]


def words_of(lines: list[str], first: int, typed: bool = False) -> tuple[Words, Words]:
    """The words with the numbers between them, and what is not shown at once: lines that begin with ">".

    Numbers may stand in the words themselves where they may be `typed`. Raises Mistake.
    """
    words = "\n".join("" if line.startswith(">") else line for line in lines)
    notes = "\n".join(line[1:].strip() if line.startswith(">") else "" for line in lines)
    return words_in(words, first, typed), words_in(notes, first, typed=True)


def words_in(text: str, first: int, typed: bool = False) -> Words:
    """A text that begins in line `first` as words with expressions between them. Raises Mistake for a typed number."""
    return _trimmed(_parts(text, first, typed))


def _parts(text: str, first: int, typed: bool) -> list[str | Expression]:
    """Words and the expressions between them. Raises Mistake for a number that is typed, where none may be."""
    parts: list[str | Expression] = []
    end = 0
    for found in EXPRESSION.finditer(text):
        parts.append(text[end : found.start()] if typed else _untyped(text[end : found.start()], text, end, first))
        parts.append(expression(found[1], first + text[: found.start()].count("\n")))
        end = found.end()
    return [*parts, text[end:] if typed else _untyped(text[end:], text, end, first)]


def _untyped(part: str, text: str, start: int, first: int) -> str:
    """Some words. Raises Mistake where a number is typed in them that is no part of a formula."""
    for found in TYPED.finditer(FORMULA.sub(lambda formula: " " * len(formula[0]), part)):
        line = first + text[: start + found.start()].count("\n")
        raise Mistake(line, f"the number {found[0].rstrip('.,')} is typed; write it as an expression, {{{{ … }}}}")
    return part


def _trimmed(words: list[str | Expression]) -> Words:
    """The words without what is empty, nor blank lines at either end."""

    def kept() -> Iterator[str | Expression]:
        for place, each in enumerate(words):
            if isinstance(each, str):
                each = each.lstrip() if place == 0 else each
                each = each.rstrip() if place == len(words) - 1 else each
            if each:
                yield each

    return tuple(kept())


def expression(text: str, line: int) -> Expression:
    try:
        return parsed(text, line)
    except ValueError as error:
        raise Mistake(line, str(error)) from None


def filled(words: Words, values: Values | None) -> str:
    """The words with the numbers in their places. One that cannot be had is a dash."""
    return "".join(each if isinstance(each, str) else _number(each, values) for each in words)


def written(words: Words, values: Values) -> str:
    """The same. Raises ValueError for a number that cannot be had."""
    return "".join(each if isinstance(each, str) else each.written(values) for each in words)


def expressions_in(words: Words) -> tuple[Expression, ...]:
    return tuple(each for each in words if isinstance(each, Expression))


def _number(expression: Expression, values: Values | None) -> str:
    try:
        return MISSING if values is None else expression.written(values)
    except ValueError:
        return MISSING
