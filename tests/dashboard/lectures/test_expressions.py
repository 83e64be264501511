"""Expressions: the arithmetic is Python's, and nothing but arithmetic can be said."""

from __future__ import annotations

import itertools
import math
import operator

import pytest

from dashboard.lectures.expressions import parsed

COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}
SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, **COMPARED}


@pytest.mark.parametrize("sign", SIGNS)
def test_two_numbers_come_to_what_python_says(sign: str) -> None:
    for first, second in itertools.product((-1000, -2, -1, 0, 1, 3, 1000), (-1000, -2, -1, 1, 3, 1000)):
        assert parsed(f"a {sign} {second}").value({"a": first}) == SIGNS[sign](first, second)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 - weight", 0.25),
        ("half(9) / 3", 1.5),
        ("sqrt(16)", 4.0),
        ("abs(0 - 3) == 3 and 1 < 2 < 3", True),
        ("1 < 2 and 3 < 2", False),
        ("1 > 2 or 2 > 1", True),
        ('name == "hide:9"', True),
    ],
)
def test_known_values(text: str, value: object) -> None:
    names = {"weight": 0.75, "half": lambda number: number / 2, "name": "hide:9"}
    assert parsed(text).value(names) == value


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("weight :.2f", "0.12"),
        ("count :,d", "1,234"),
        ("weight", "0.125"),
        ("0 - weight :.1f", "−0.1"),
        ("'a:b'", "a:b"),
    ],
)
def test_a_value_is_written_as_asked_with_a_true_minus(text: str, written: str) -> None:
    assert parsed(text).written({"weight": 0.125, "count": 1234}) == written


NO_ARITHMETIC = [
    *("", "a b", "().__class__", "[].append(1)", "lambda: 1", "[x for x in y]", "f'{a}'", "a[0]", "a if b else c"),
    *("2 ** 1000000", "a << 5", "print(a, file=b)", "(a := 1)", "not a", "f(x)(y)", "1 + " * 100 + "1", "-" * 50 + "1"),
]


@pytest.mark.parametrize("text", NO_ARITHMETIC)
def test_what_is_no_arithmetic_is_refused_before_anything_is_worked_out(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the sentence depends on what is wrong
        parsed(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nope", "there is no “nope” in a view; there are big, name"),
        ("1 / 0", "“1 / 0” has no value"),
        ("name * 9", "“hide” is no number"),
        ("big * 10", "is no finite number"),
        ("big()", "has no value"),
    ],
)
def test_what_has_no_value_says_so_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(").replace(")", r"\)")):
        parsed(text).value({"name": "hide", "big": math.inf})


def test_a_form_that_does_not_fit_says_so() -> None:
    with pytest.raises(ValueError, match=r"cannot be written|Unknown format|Invalid format"):
        parsed("name :.2f").written({"name": "hide"})
