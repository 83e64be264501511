"""Names that a library does not promise: each is looked for before it is used, and else left out.

A part of this program that needs such names says so with `needs`. It says as well what is lost without it, which is
logged in one line, and what is called in its place, so that the rest goes on.
"""

from __future__ import annotations

import dis
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper, wraps
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(eq=False)
class Part(Generic[P, T]):
    """A function that is called as it stands where all that it `needs` is there; else `instead` is."""

    function: Callable[P, T]
    needs: tuple[str, ...]
    without: str
    instead: Callable[P, T]

    def __post_init__(self) -> None:
        update_wrapper(self, self.function)
        self._there: bool | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return (self.function if self.is_there() else self.instead)(*args, **kwargs)

    def is_there(self) -> bool:
        """Is all there that this needs? It is looked for once a process, and what is missing is logged in one line."""
        if self._there is None:
            missing = [need for need in self.needs if not exists(need)]
            self._there = not missing
            if missing:
                library = missing[0].partition(":")[0].partition(".")[0].partition("/")[0]
                name, more = missing[0].partition(":")[2].strip(), len(missing) - 1
                others = f" and {more} more" if more else ""
                log.warning(f"{library.title()} {version(library)} has no {name}{others}, so {self.without}.")
        return self._there


def needs(*names: str, without: str, instead: Callable[P, T]) -> Callable[[Callable[P, T]], Part[P, T]]:
    """Make a function a part of this program that needs these names (see `exists`), and is left out where one is gone.

    `without` says what is lost then, as in "a click may be lost", and `instead` is called in its place.
    """
    return lambda function: Part(function, names, without, instead)


def exists(need: str) -> bool:
    """Whether an installed library has a name that is not promised, or words in a file of its own.

    `package.module:function(one, two)` has just these parameters, which are not looked at without brackets.
    `package.module:Class.member` is one of the class or one of its objects', and `Class.__dict__` says that an object
    takes further attributes. `package/folder/*.js: words` is a file with these words in it.
    """
    place, _, name = need.partition(":")
    if "/" in place:
        return name.strip() in _text(place)
    name, bracket, parameters = name.partition("(")
    try:
        found: Any = import_module(place)
        for each in name.split("."):
            found = _member(found, each)
        return not bracket or ", ".join(inspect.signature(found).parameters) == parameters.removesuffix(")")
    except (ImportError, AttributeError, TypeError, ValueError):
        return False


def _member(owner: Any, name: str) -> Any:
    """What an object has by a name; None where only the objects of a class have it. Raises AttributeError."""
    if inspect.isclass(owner):
        if name == "__dict__" and not owner.__dictoffset__:
            raise AttributeError(name)
        if not hasattr(owner, name) and any(name in _set_in(each) for each in owner.__mro__):
            return None
    return getattr(owner, name)


def _set_in(owner: type) -> set[str]:
    """The attributes that an object of a class is declared to have, or is given when it is made."""
    made = getattr(inspect.unwrap(vars(owner).get("__init__", owner)), "__code__", None)
    stored = [each.argval for each in dis.get_instructions(made) if each.opname == "STORE_ATTR"] if made else []
    fields = getattr(vars(owner).get("DESCRIPTOR"), "fields_by_name", ())  # of a message of protobuf
    return {*inspect.get_annotations(owner), *stored, *fields}


def _text(place: str) -> str:
    """The text of the files of a package that a pattern names."""
    package, _, pattern = place.partition("/")
    spec = find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return "\n".join(path.read_text(encoding="utf-8") for each in folders for path in sorted(Path(each).glob(pattern)))


def put_around(owner: type, name: str, around: Callable[..., Any]) -> None:
    """Have a method of a class called by `around(method, self, …)` alone; once, however often this is asked."""
    method = getattr(owner, name)
    layer = method
    while layer is not None:
        if getattr(layer, "around", None) is around:
            return
        layer = getattr(layer, "__wrapped__", None)

    @wraps(method)
    def instead(*args: Any, **kwargs: Any) -> Any:
        return around(method, *args, **kwargs)

    vars(instead)["around"] = around
    setattr(owner, name, instead)
