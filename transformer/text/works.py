"""Works: a text is held out by whole works, so that no play is half learned and half examined."""

from __future__ import annotations

import re
from dataclasses import dataclass

FEW = 12
"""Of so many works one is held out."""
HELD_OUT = 0.1
"""Of a text that is one work, the part at its end that is held out."""
_CAST = re.compile(r"(?m)^[ \t]*(?:\d? ?[A-Z][A-Z0-9 ,.'’;-]+\n)\s*(?=DRAMATIS PERSON)")
"""A title in capitals, and under it the cast: how the plays begin in the old electronic editions."""
_CONTENTS = re.compile(r"(?m)^[ \t]*Contents[ \t]*\n\s*\n((?:[ \t]*\S.*\n)+)")
"""A table of contents: how Project Gutenberg's complete works begin."""
_BEGIN = re.compile(r"(?m)^\*\*\* ?START OF TH.*\*\*\*[ \t]*$")
_END = re.compile(r"(?m)^\*\*\* ?END OF TH.*\*\*\*[ \t]*$")


@dataclass(frozen=True)
class Work:
    """One work of a text."""

    title: str
    text: str


def without_licence(text: str) -> str:
    """What stands between Project Gutenberg's two lines of asterisks; the whole text where there are none."""
    begin, end = _BEGIN.search(text), _END.search(text)
    return text[begin.end() if begin else 0 : end.start() if end else len(text)]


def works(text: str) -> list[Work]:
    """The works of a text, in their order: by its table of contents, else by its casts of characters, else one."""
    text = without_licence(text)
    starts = _by_contents(text) or _by_casts(text)
    if len(starts) < 2:
        return [Work("", text)]
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return [Work(" ".join(title.split()), text[start:end]) for (start, title), end in zip(starts, ends, strict=True)]


def _by_contents(text: str) -> list[tuple[int, str]]:
    """Where each title of the table of contents stands alone on a line of its own, after the table."""
    table = _CONTENTS.search(text)
    if table is None:
        return []
    starts, place = [], table.end()
    for title in table[1].splitlines():
        found = re.compile(rf"(?m)^[ \t]*{re.escape(title.strip())}[ \t]*$").search(text, place)
        if found is None:
            return []  # a table of something else, or of another edition
        starts.append((found.start(), title))
        place = found.end()
    return starts


def _by_casts(text: str) -> list[tuple[int, str]]:
    """Where a title stands above a cast; what comes before the first belongs to it, for it may be verse."""
    found = list(_CAST.finditer(text))
    return [(match.start() if i else 0, match[0]) for i, match in enumerate(found)]


def hold_out(found: list[Work]) -> tuple[list[Work], list[Work]]:
    """Training and validation: one work of every FEW, evenly spread; of a single work its last tenth."""
    if len(found) == 1:
        text = found[0].text
        at, latest = int(len(text) * (1 - HELD_OUT)), int(len(text) * (1 - HELD_OUT / 2))
        cut = text.find("\n", at, latest) + 1 or at
        return [Work(found[0].title, text[:cut])], [Work(found[0].title, text[cut:])]
    many = max(1, len(found) // FEW)
    chosen = {int((i + 0.5) * len(found) / many) for i in range(many)}
    return (
        [work for i, work in enumerate(found) if i not in chosen],
        [work for i, work in enumerate(found) if i in chosen],
    )
