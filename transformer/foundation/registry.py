"""A plug-in is one file in a folder: found, not listed.

The folder is the menu. Putting `triangular.py` with one `Mask` subclass into `transformer/masks/` adds "triangular"
to the command line, to the dashboard and to the contract tests. Where there are many, the folder has folders.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Generic, TypeVar

from transformer.foundation.foreign import quoted

T = TypeVar("T")


class Registry(Generic[T]):
    """The plug-ins of one folder and of those in it: every module that defines one public subclass of `base`."""

    def __init__(self, base: type[T], package: str, folder: str) -> None:
        self.base, self.package, self.folder = base, package, folder
        self._found: dict[str, type[T]] = {}

    def names(self) -> tuple[str, ...]:
        """The menu, alphabetical. Nothing is imported for it."""
        return tuple(sorted(self._modules()))

    def _modules(self) -> dict[str, str]:
        """The module of each plug-in, by name."""
        rooms = {self.package: Path(self.folder)}
        rooms |= {f"{self.package}.{inner.name}": inner for inner in Path(self.folder).glob("[!_]*/")}
        return {
            name: f"{room}.{name.replace('-', '_')}" for room, folder in rooms.items() for name in folder_names(folder)
        }

    def __getitem__(self, name: str) -> type[T]:
        """The class behind a name. Raises KeyError with the menu when there is none."""
        if name not in self._found:
            self._found[name] = self._load(name)
        return self._found[name]

    def _load(self, name: str) -> type[T]:
        modules = self._modules()
        if name not in modules:
            raise KeyError(
                f"no {self.base.__name__.lower()} named {quoted(name)}: choose one of {', '.join(self.names())}"
            )
        module = importlib.import_module(modules[name])
        found = [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, self.base) and value.__module__ == module.__name__
        ]
        if len(found) != 1:
            raise TypeError(f"{module.__name__} must define exactly one {self.base.__name__}, found {len(found)}")
        return found[0]


def folder_names(folder: str | Path) -> tuple[str, ...]:
    """Names of the plug-ins in a folder: its public modules, with hyphens for underscores."""
    modules = pkgutil.iter_modules([str(folder)])
    return tuple(sorted(m.name.replace("_", "-") for m in modules if not (m.name.startswith("_") or m.ispkg)))
