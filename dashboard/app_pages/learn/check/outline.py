"""What a piece of code defines, read from its text: nothing of it is run."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from threading import Lock

from transformer.foundation.foreign import shortened

NOWHERE = "<code of a reader>"
"""Where the code comes from, for Python's own warnings: these are not printed."""
MOST_NAMES = 200
ASIDE = re.compile(r"main|test_|Test|_")
"""Beginnings of names that are seldom what is to be checked."""
_PARSING = Lock()
"""Python 3.11 may fail to parse in two threads at once."""


@dataclass(frozen=True)
class Outline:
    """The functions and classes of a file, in their order; or why there are none."""

    names: tuple[str, ...] = ()
    problem: str = ""

    @property
    def likeliest(self) -> str:
        """The name that is checked unless another is picked: the last, for what it is made of stands before it."""
        meant = [name for name in self.names if not ASIDE.match(name)]
        return [*self.names, *meant][-1] if self.names else ""


def outline(code: str) -> Outline:
    """The functions and classes that stand at the top of a file."""
    if not code.strip():
        return Outline()
    try:
        tree = _parsed(code)
    except SyntaxError as error:
        where = f"line {error.lineno}" if error.lineno else "somewhere"
        return Outline(problem=f"This is no valid Python: {where}, {shortened(error.msg)}.")
    except (ValueError, RecursionError, MemoryError, OverflowError, SystemError):
        return Outline(problem="This is no Python that can be read.")
    names = dict.fromkeys(filter(None, map(_name, tree.body)))
    if not names:
        return Outline(problem="There is no function and no class in this code.")
    return Outline(tuple(names)[:MOST_NAMES])


def _name(node: ast.stmt) -> str:
    """The name of a function or a class; empty for any other statement."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda()):
            return name
    return ""


def _parsed(code: str) -> ast.Module:
    with _PARSING:
        warnings.filterwarnings("ignore", module=re.escape(NOWHERE))
        return ast.parse(code, NOWHERE)
