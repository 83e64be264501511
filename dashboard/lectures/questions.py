"""What is asked before it is shown: a choice, a number, bars to draw, cells to paint, or some words of one's own.

The answers are expressions over the view, as all numbers of a lecture are: nobody types which one is right.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashboard.lectures.expressions import Expression, Values
from dashboard.lectures.reading import Words, expressions_in, written

CHOICE, NUMBER, BARS, CELLS, WORDS = "choice", "number", "bars", "cells", "words"
MOST_BARS, MOST_CELLS = 40, 40
"""Bars that are drawn by hand, and rows or columns of a pattern that is painted."""
DIGITS = re.compile(r"\.(\d)f")


@dataclass(frozen=True)
class Bars:
    """Numbers from 0 to 1, by name: an accuracy by position, the weights of a row."""

    labels: tuple[str, ...]
    heights: tuple[float, ...]


@dataclass(frozen=True)
class Cells:
    """A head's pattern [query, key], and which of its cells the mask allows."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    weights: np.ndarray
    allowed: np.ndarray


@dataclass(frozen=True)
class Question:
    """What is asked, and how its answer is known."""

    words: Words
    """The question itself, and between its words the numbers that it names."""
    kind: str
    expression: Expression | None = None
    """The number, the bars or the cells that are to be predicted."""
    choices: tuple[tuple[Words, Expression], ...] = ()
    """What one can choose, each with what makes it the right one."""
    line: int = 0

    @property
    def known_by(self) -> tuple[Expression, ...]:
        """All expressions that the answer takes."""
        return (*((self.expression,) if self.expression else ()), *(when for _, when in self.choices))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Those whose values are read in the question and its choices."""
        return tuple(
            found for words in (self.words, *(said for said, _ in self.choices)) for found in expressions_in(words)
        )


def asked(question: Question, values: Values, of: str) -> tuple[dict[str, Any], bytes]:
    """A question and its answer as the browser takes them: a header, and the weights of cells as float32 [row, column].

    Its `id` tells questions with other answers apart, and those `of` another view. Raises ValueError where there is no
    answer.
    """
    header: dict[str, Any] = {"ask": written(question.words, values), "kind": question.kind}
    body = b""
    if question.kind == CHOICE:
        header |= _choice(question, values)
    elif question.kind == NUMBER:
        header |= _number(question, values)
    elif question.kind == BARS:
        header |= _bars(_found(question, values, Bars))
    elif question.kind == CELLS:
        cells = _found(question, values, Cells)
        header |= _cells(cells)
        body = np.ascontiguousarray(cells.weights, dtype="<f4").tobytes()
    digest = hashlib.sha256(repr((of, header)).encode() + body)
    return header | {"id": digest.hexdigest()[:16]}, body


def _choice(question: Question, values: Values) -> Mapping[str, Any]:
    right = [place for place, (_, when) in enumerate(question.choices) if when.value(values) is True]
    if len(right) != 1:
        raise ValueError(f"{len(right) or 'none'} of the choices are true of this view; one is to be")
    return {"choices": [written(words, values) for words, _ in question.choices], "truth": right[0]}


def _number(question: Question, values: Values) -> Mapping[str, Any]:
    assert question.expression is not None
    truth = question.expression.value(values)
    if isinstance(truth, bool) or not isinstance(truth, int | float):
        raise ValueError(f"“{question.expression.text}” is no number")
    digits = DIGITS.search(question.expression.form)
    places = int(digits[1]) if digits else 0 if float(truth).is_integer() else 2
    # By what is asked, never by the answer: the field would tell that it lies between 0 and 1.
    share = any("share" in words.lower().split() for words in question.words if isinstance(words, str))
    return {"truth": float(truth), "digits": places, "share": share}


def _bars(bars: Bars) -> Mapping[str, Any]:
    if not 1 <= len(bars.heights) <= MOST_BARS:
        raise ValueError(f"there are {len(bars.heights)} bars; 1 to {MOST_BARS} can be drawn by hand")
    if not all(math.isfinite(height) and 0 <= height <= 1 for height in bars.heights):
        raise ValueError("a bar that is drawn by hand goes from 0 to 1")
    return {"labels": list(bars.labels), "truth": list(bars.heights)}


def _cells(cells: Cells) -> Mapping[str, Any]:
    if max(cells.weights.shape) > MOST_CELLS:
        raise ValueError(
            f"a pattern of {max(cells.weights.shape)} tokens is too large to paint; {MOST_CELLS} are the most"
        )
    allowed = np.packbits(cells.allowed.ravel()).tolist()
    return {"rows": list(cells.rows), "columns": list(cells.columns), "allowed": allowed}


def _found(question: Question, values: Values, kind: type[Any]) -> Any:
    """What the question's expression comes to. Raises ValueError where it is of another kind."""
    assert question.expression is not None
    found = question.expression.value(values)
    if not isinstance(found, kind):
        raise ValueError(f"“{question.expression.text}” is not what “{question.kind}” takes")
    return found
