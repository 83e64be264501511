"""What followers answer: five kinds of votes, what each may hold, and what they come to together."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np

from dashboard.server.rooms.limits import Limits, Refused
from dashboard.server.rooms.rooms import OTHER_SHAPE, Ballot, Vote

KIND = re.compile(r"(choice(:\d{1,4})?|number|bars(:\d{1,4})?|cells(:\d{1,4}x\d{1,4})?|words)?")
"""What a question takes: which of several, counted from 0; a number; a height from 0 to 1 for each position; a value
from 0 to 1 for each cell of a matrix; a few words. A size may be said, too: choice:4, bars:8, cells:8x16 (rows first);
else the first vote says it. Empty: the first vote says all of it."""
CHOICES = 100
"""At most, where it is not said."""
LARGEST = 1e9
"""Of numbers, either sign: their squares can still be summed."""
LATEST = 50
"""Words that the lecturer sees."""


def read(body: bytes, voter: str, sender: str, kind: str, limits: Limits) -> Vote:
    """The vote that a voter sends, to a question that takes answers of this kind. Raises Refused with 400."""
    try:
        sent = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Refused(400, "A vote must be JSON; what came is not.") from None
    if not isinstance(sent, dict):
        raise Refused(400, "A vote must be an object with question and answer.")
    question, answer = sent.get("question"), sent.get("answer")
    if not isinstance(question, str):
        raise Refused(400, "A vote must name its question.")
    if isinstance(answer, str):
        answer = _writable(answer).strip()
    its = shape(answer, limits.words)
    if kind and not fits(answer, its, kind):
        raise Refused(400, OTHER_SHAPE)
    return Vote(_writable(question), voter, sender, its, json.dumps(answer, separators=(",", ":")))


def shape(answer: Any, words: int) -> str:
    """What answers that are added up have in common: "one", "bars:8", "cells:8x8" or "words".

    A choice and a number are told apart by all that came together, for JavaScript writes 1.0 as 1. Raises Refused with
    400 for what is no answer.
    """
    if isinstance(answer, str):
        if not 0 < len(answer) <= words:
            raise Refused(400, f"An answer in words has 1 to {words} characters.")
        return "words"
    if _is_number(answer):
        if not abs(answer) <= LARGEST:
            raise Refused(400, f"A number must be between −{LARGEST:,.0f} and {LARGEST:,.0f}.")
        return "one"
    if isinstance(answer, list) and answer:
        if all(_is_share(each) for each in answer):
            return f"bars:{len(answer)}"
        if all(isinstance(row, list) and row and len(row) == len(answer[0]) for row in answer) and all(
            _is_share(each) for row in answer for each in row
        ):
            return f"cells:{len(answer)}x{len(answer[0])}"
    raise Refused(
        400, "An answer must be a number, a text, a list of numbers from 0 to 1, or equally long lists of them."
    )


def fits(answer: Any, its: str, kind: str) -> bool:
    """Whether an answer, of its shape, is one of this kind."""
    name, _, size = kind.partition(":")
    if name == "choice":
        return _is_choice(answer, int(size or CHOICES))
    if name == "number":
        return its == "one"
    return its == kind if size else its.partition(":")[0] == kind


def tally(ballot: Ballot) -> dict[str, Any]:
    """What the lecturer sees: how many follow and vote, the kind of answers, and what these come to.

    By kind. choice: `counts` by the number of the choice; number: `mean` and `sd`; bars: `mean` and `sd` of each;
    cells: `mean` of each, in rows; words: the last 50, the newest last. An sd is that of these votes, with n below.
    """
    answers = [json.loads(answer) for answer in ballot.answers]
    kind = _kind(ballot.kind.partition(":")[0], answers)
    seen = {"question": ballot.question, "followers": ballot.followers, "votes": len(answers), "kind": kind}
    if not answers:
        return seen
    if kind == "choice":
        return seen | {"counts": {str(choice): count for choice, count in sorted(Counter(answers).items())}}
    if kind == "words":
        return seen | {"words": answers[-LATEST:]}
    values = np.asarray(answers, dtype=np.float64)
    seen["mean"] = values.mean(0).tolist()
    return seen if kind == "cells" else seen | {"sd": values.std(0).tolist()}


def _kind(said: str, answers: list[Any]) -> str:
    """The kind that the answers are; where they are none, or may be two, the one that the lecturer said."""
    if not answers:
        return said
    first = answers[0]
    if isinstance(first, str):
        return "words"
    if isinstance(first, list):
        return "cells" if isinstance(first[0], list) else "bars"
    return "choice" if said != "number" and all(_is_choice(each, CHOICES) for each in answers) else "number"


def _is_choice(value: Any, count: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _writable(text: str) -> str:
    """A text without halves of characters, which JSON can say and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def _no_number(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are no JSON
