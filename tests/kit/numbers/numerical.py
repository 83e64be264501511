"""Which tests are numerical: those that compare numbers with a tolerance."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType

TOLERANT = {"near", "approx", "isclose", "allclose", "assert_allclose", "assert_close"}
"""What a test calls that compares numbers with others which were computed elsewhere, or in another way."""


@cache
def is_numerical(test: FunctionType) -> bool:
    """Does a test, or a function of the tests that it calls, use one of these names?"""
    met, waiting = set(), [test]
    while waiting:
        each = waiting.pop()
        met.add(each)
        names = set(names_in(each.__code__))
        if names & TOLERANT:
            return True
        called = {each.__globals__.get(name) for name in names if isinstance(each.__globals__.get(name), FunctionType)}
        waiting += [function for function in called - met if function.__module__.startswith("tests.")]
    return False


def names_in(code: CodeType) -> Iterator[str]:
    """The global names and attributes that a function uses, also in its lambdas and comprehensions."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from names_in(each)
