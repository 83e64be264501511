"""Every lecture and every exercise that is here: the shipped ones, and those of a folder of one's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from dashboard.lectures import lecture
from dashboard.lectures.exercises import exercise
from dashboard.lectures.exercises.exercise import Exercise
from dashboard.lectures.lecture import Lecture
from dashboard.lectures.reading import Mistake

SHIPPED = Path(__file__).parent
OWN = os.environ.get("ATTENTION_LAB_LECTURES", "")
"""A folder with more of them, its exercises below `exercises/`; one called like a shipped one takes its place."""
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Shelf(Generic[Kind]):
    """What was read, by name, and of each file that cannot be used a sentence why."""

    files: dict[str, Kind]
    mistakes: tuple[str, ...]


def lectures() -> Shelf[Lecture]:
    """All lectures; each file is read again when it was changed."""
    return _all("", lecture.load)


def exercises() -> Shelf[Exercise]:
    """All exercises, in the order in which they are to be tried."""
    shelf = _all("exercises", exercise.load)
    return Shelf(dict(sorted(shelf.files.items(), key=lambda each: (each[1].order, each[0]))), shelf.mistakes)


def _all(below: str, load: Callable[[Path], Kind]) -> Shelf[Kind]:
    found: dict[str, Kind] = {}
    mistakes = []
    for folder in (SHIPPED, *([Path(OWN)] if OWN else [])):
        try:
            paths = sorted((folder / below).glob("*.md"))
        except OSError:
            paths = []
        for path in paths:
            try:
                found[path.stem] = _load(path, load)
            except Mistake as mistake:
                mistakes.append(f"{path.name}, {mistake}.")
            except OSError as error:
                mistakes.append(f"{path.name} cannot be read: {error.strerror}.")
    return Shelf(found, tuple(mistakes))


_read: dict[Path, tuple[tuple[int, int], Any]] = {}


def _load(path: Path, load: Callable[[Path], Kind]) -> Kind:
    """What a file holds, read once as long as the file stays as it is. Raises Mistake."""
    there = path.stat()
    stamp = (there.st_mtime_ns, there.st_size)
    if path not in _read or _read[path][0] != stamp:
        try:
            _read[path] = (stamp, load(path))
        except Mistake as mistake:
            _read[path] = (stamp, mistake)
    kept = _read[path][1]
    if isinstance(kept, Mistake):
        raise Mistake(kept.line, kept.args[0])
    found: Kind = kept
    return found
