"""A plug-in is one file in a folder: found, not listed.

The folder is the menu. Putting `triangular.py` with one `Mask` subclass into `transformer/masks/` adds "triangular"
to the command line, to the dashboard and to the contract tests. Where there are many, the folder has folders.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Collection
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

from transformer.foundation.checks import UserError
from transformer.foundation.foreign import quoted, shortened

T = TypeVar("T")


class PlugInError(UserError):
    """A plug-in that cannot be used; the message is one sentence that says what is missing."""


KINDS: dict[Any, str] = {str: "a text", bool: "True or False", int: "a whole number"}
"""What the plain values of a plug-in may be, in words."""


def fault_of_values(found: type, declared: type, wanted: Collection[str]) -> str:
    """Which values that the class `declared` annotates a plug-in leaves out or has of another kind; empty for none.

    Of those that are `wanted` an empty text is none.
    """
    missing = [name for name in wanted if getattr(found, name, "") == ""]
    if missing:
        return f"it does not say its {', '.join(missing)}"
    for name, annotation in get_type_hints(declared).items():
        if not hasattr(found, name):
            continue
        value, (kind,) = getattr(found, name), get_args(annotation)
        if get_origin(kind) is Literal:
            if not isinstance(value, str) or value not in get_args(kind):
                choices = ", ".join(each or "an empty text" for each in get_args(kind))
                return f"`{name}` must be one of {choices}, not {quoted(value)}"
        elif type(value) is not kind:
            return f"`{name}` must be {KINDS[kind]}, not {quoted(value)}"
    return ""


def _unreadable(path: str, error: Exception) -> PlugInError:
    """What is said of a module that cannot be read."""
    return PlugInError(f"the plug-in {path} cannot be read: {type(error).__name__}: {shortened(str(error), 200)}")


def _fault_of_methods(found: type) -> str:
    """Which methods a plug-in has to write and does not; empty for none."""
    missing = sorted(getattr(found, "__abstractmethods__", ()))
    return f"it does not define {', '.join(f'`{each}`' for each in missing)}" if missing else ""


class Registry(Generic[T]):
    """The plug-ins of one folder and of those in it: every module that defines one public subclass of `base`.

    `base` may be a name, "transformer.masks:Mask", which is imported with the first plug-in. What `fault` says of a
    class is why it cannot be used; nothing where it can.
    """

    def __init__(
        self, base: type[T] | str, package: str, folder: str, *, fault: Callable[[type[T]], str] = lambda _: ""
    ) -> None:
        self._base, self.package, self.folder, self._fault = base, package, folder, fault
        self._found: dict[str, type[T]] = {}
        self._named: set[object] = set()

    @property
    def base(self) -> type[T]:
        """The class that every plug-in is a subclass of."""
        found: type[T] = pkgutil.resolve_name(self._base) if isinstance(self._base, str) else self._base
        return found

    def names(self) -> tuple[str, ...]:
        """The menu, alphabetical. Nothing is imported for it."""
        return tuple(sorted(self._modules()))

    def __contains__(self, name: object) -> bool:
        """Is there one of this name? Nothing is imported for it, and the folder is read until the name was found."""
        if name not in self._named:
            self._named |= self._modules().keys()
        return name in self._named

    def _modules(self) -> dict[str, str]:
        """The module of each plug-in, by name."""
        rooms = {self.package: Path(self.folder)}
        rooms |= {f"{self.package}.{inner.name}": inner for inner in Path(self.folder).glob("[!_]*/")}
        return {
            name: f"{room}.{name.replace('-', '_')}" for room, folder in rooms.items() for name in folder_names(folder)
        }

    def _module(self, name: str) -> str:
        modules = self._modules()
        if name not in modules:
            kind = self._base.rpartition(":")[2] if isinstance(self._base, str) else self._base.__name__
            raise KeyError(f"no {kind.lower()} named {quoted(name)}: choose one of {', '.join(self.names())}")
        return modules[name]

    def __getitem__(self, name: str) -> type[T]:
        """The class behind a name. Raises KeyError with the menu when there is none, PlugInError for one of no use."""
        if name not in self._found:
            self._found[name] = self._load(name)
        return self._found[name]

    def _load(self, name: str) -> type[T]:
        path = self._module(name)
        try:
            found = self._class_in(importlib.import_module(path))
        except PlugInError as error:
            raise PlugInError(f"the plug-in {path} cannot be used: {error}") from None
        except Exception as error:  # whatever a stranger's file ends in
            raise _unreadable(path, error) from error
        if fault := self._fault(found) or _fault_of_methods(found):
            raise PlugInError(f"the plug-in {path} cannot be used: {fault}")
        return found

    def _class_in(self, module: ModuleType) -> type[T]:
        """The one class of a module that is a plug-in. Raises PlugInError for none or several."""
        found = [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, self.base) and value.__module__ == module.__name__
        ]
        if len(found) != 1:
            raise PlugInError(f"it must define exactly one {self.base.__name__}, and defines {len(found)}")
        return found[0]

    def read(self, name: str) -> dict[str, Any]:
        """The plain values that a plug-in's class is given: read from its file, and nothing is imported.

        Raises KeyError with the menu when there is none, PlugInError for a file that is no Python.
        """
        path = self._module(name)
        package, *rooms = path.split(".")
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.submodule_search_locations is not None
        file = Path(spec.submodule_search_locations[0], *rooms).with_suffix(".py")
        values: dict[str, Any] = {}
        try:
            code = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError) as error:
            raise _unreadable(path, error) from error
        for made in code.body:
            for line in made.body if isinstance(made, ast.ClassDef) else ():
                if not isinstance(line, ast.Assign | ast.AnnAssign) or line.value is None:
                    continue
                for target in line.targets if isinstance(line, ast.Assign) else [line.target]:
                    if isinstance(target, ast.Name):
                        with contextlib.suppress(ValueError):  # no plain value
                            values[target.id] = ast.literal_eval(line.value)
        return values


def folder_names(folder: str | Path) -> tuple[str, ...]:
    """Names of the plug-ins in a folder: its public modules, with hyphens for underscores."""
    modules = pkgutil.iter_modules([str(folder)])
    return tuple(sorted(m.name.replace("_", "-") for m in modules if not (m.name.startswith("_") or m.ispkg)))
