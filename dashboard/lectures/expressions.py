"""Expressions in a lecture's words: arithmetic and comparisons over named numbers of a view, and nothing else.

They look like Python and are read by its parser, but nothing is run: each part is looked at here. What a name stands
for is said in values.py.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

LONGEST, DEEPEST = 200, 20
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"sqrt": math.sqrt, "log": math.log, "abs": abs, "round": round}
Value = float | int | str
Values = Mapping[str, Any]
"""What each name stands for: a value, or a function of values."""


@dataclass(frozen=True)
class Expression:
    """An expression, and how its value is written."""

    text: str
    form: str
    """As in Python's format strings, ".2f"; empty writes the value as it is."""
    tree: ast.expr = field(compare=False, repr=False)
    line: int = 0
    """Where in its file it stands, from 1."""

    def value(self, values: Values) -> Value:
        """What it comes to. Raises ValueError, in a sentence, where it comes to nothing."""
        try:
            found = _value(self.tree, values)
        except (ArithmeticError, IndexError, KeyError, TypeError) as error:
            raise ValueError(f"“{self.text}” has no value: {error}") from error
        if isinstance(found, float) and not math.isfinite(found):
            raise ValueError(f"“{self.text}” is no finite number")
        return found

    def left(self, values: Values) -> Value | None:
        """What the left side of a comparison comes to; None where this is none."""
        return _value(self.tree.left, values) if isinstance(self.tree, ast.Compare) else None

    def unknown(self, values: Values) -> list[str]:
        """The names in it that stand for nothing."""
        names = (node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name))
        return [name for name in names if name not in FUNCTIONS and name not in values]

    def written(self, values: Values) -> str:
        """Its value as it stands in a sentence, with a true minus. Raises ValueError."""
        try:
            written = format(self.value(values), self.form)
        except TypeError as error:
            raise ValueError(f"“{self.text}” cannot be written as “{self.form}”") from error
        return written.replace("-", "−") if written.startswith("-") else written


def parsed(text: str, line: int = 0) -> Expression:
    """Read an expression and, after its last colon, how it is written. Raises ValueError for what is none."""
    text = text.strip()
    if len(text) > LONGEST:
        raise ValueError(f"an expression has at most {LONGEST} letters")
    before, _, after = text.rpartition(":")
    written, form, tree = text, "", _tree(text)  # first without a form: a colon may stand in a name, "hide:9"
    if tree is None:
        written, form = before.strip(), after.strip()
        tree = _tree(written)
    if tree is None:
        raise ValueError(f"“{text[:60]}” is no expression")
    try:
        _check(tree, 0)
    except ValueError as error:
        raise ValueError(f"“{written[:60]}”: {error}") from None
    return Expression(written, form, tree, line)


def _tree(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _check(node: ast.AST, depth: int) -> None:
    """Let through what `_value` knows. Raises ValueError."""
    if depth > DEEPEST:
        raise ValueError("it is nested too deeply")
    match node:
        case ast.Constant(value=int() | float() | str()) | ast.Name():
            return
        case ast.BinOp(op=op) | ast.UnaryOp(op=op):
            ops = [op]
        case ast.Compare(ops=ops):
            pass
        case ast.BoolOp():
            ops = []
        case ast.Call(func=ast.Name(), keywords=[]):
            ops = []
        case _:
            raise ValueError("only numbers, names, calls, + − * /, comparisons, and, or can stand in it")
    for op in ops:
        if type(op) not in OPERATORS:
            raise ValueError("only numbers, names, calls, + − * /, comparisons, and, or can stand in it")
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            _check(child, depth + 1)


def _value(node: ast.expr, values: Values) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _named(name, values)
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](_number(left, values), _number(right, values))
        case ast.UnaryOp(op=op, operand=operand):
            return OPERATORS[type(op)](_number(operand, values))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [_value(each, values) for each in (left, *comparators)]
            return all(OPERATORS[type(op)](*pair) for op, pair in zip(ops, pairwise(sides), strict=True))
        case ast.BoolOp(op=op, values=parts):
            found = (bool(_value(each, values)) for each in parts)
            return all(found) if isinstance(op, ast.And) else any(found)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _named(name, values)(*(_value(each, values) for each in arguments))
    raise AssertionError(node)


def _number(node: ast.expr, values: Values) -> int | float:
    """A value to reckon with: a text times a number would be a long text."""
    value = _value(node, values)
    if not isinstance(value, int | float):
        raise TypeError(f"“{value}” is no number")
    return value


def _named(name: str, values: Values) -> Any:
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name not in values:
        raise ValueError(f"there is no “{name[:40]}” in a view; there are {', '.join(sorted(values))}")
    return values[name]
