"""Every lecture that is here: those that come with the dashboard, and those of a folder of one's own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dashboard.lectures.lecture import Lecture, Mistake, load

SHIPPED = Path(__file__).parent
OWN = os.environ.get("ATTENTION_LAB_LECTURES", "")
"""A folder with more of them; one that is called like a shipped one takes its place."""


@dataclass(frozen=True)
class Shelf:
    """The lectures by name, and of each file that is none a sentence why."""

    lectures: dict[str, Lecture]
    mistakes: tuple[str, ...]


def shelf() -> Shelf:
    """All lectures; each file is read again when it was changed."""
    found: dict[str, Lecture] = {}
    mistakes = []
    for folder in (SHIPPED, *([Path(OWN)] if OWN else [])):
        try:
            paths = sorted(folder.glob("*.md"))
        except OSError:
            paths = []
        for path in paths:
            try:
                found[path.stem] = _load(path)
            except Mistake as mistake:
                mistakes.append(f"{path.name}, {mistake}.")
            except OSError as error:
                mistakes.append(f"{path.name} cannot be read: {error.strerror}.")
    return Shelf(found, tuple(mistakes))


_read: dict[Path, tuple[tuple[int, int], Lecture | Mistake]] = {}


def _load(path: Path) -> Lecture:
    """The lecture of a file, read once as long as the file stays as it is. Raises Mistake."""
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
    return kept
