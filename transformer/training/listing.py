"""The runs of a folder, each read once for every version of its files. No PyTorch here.

To look at a folder costs a few questions to the system for each run; nothing is opened of a run that has not changed.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_
from pathlib import Path

from transformer.config import RunConfig
from transformer.foundation.checks import reason
from transformer.foundation.foreign import shortened
from transformer.foundation.versions import Memory, Version, is_settled, version_of
from transformer.text import shelf
from transformer.training import runs
from transformer.training.runs import ROOT, Run, RunError, State

SHARED_FOR = 0.25
"""Seconds for which all who ask share one look at a folder, unless this process has changed a run meanwhile."""
MOST_FOLDERS = 256
"""Folders of which the last look is remembered: that of the server, and those of its guests."""
FILES = ("run.json", "state.json", "evaluation.json", "snapshots")
"""What a run's entry is made from."""
Versions = tuple[Version | int, ...]
"""Of each of FILES, or of nothing but the number of the error where there is none."""


@dataclass(frozen=True, eq=False)
class Entry:
    """What a list says of one run. The same object stands for it as long as nothing of it has changed."""

    run: Run
    fault: str
    """Why it cannot be read, in a sentence; empty where it can. Of one that cannot all else is empty."""
    state: State
    created: float = 0.0
    device: str = ""
    steps: tuple[int, ...] = ()
    """Those of which there are weights, ascending."""
    second_half: float | None = None
    perplexity: float | None = None
    """Both as they were measured at its end."""
    _config: RunConfig | None = None

    @cached_property
    def name(self) -> str:
        return self.run.name

    def metrics_version(self) -> object:
        """What equals itself at the next look as long as nothing can have been written into its metrics."""
        try:
            version = version_of(os.stat(self.run.folder / "metrics.jsonl"))
        except OSError as error:
            return error.errno
        return version if is_settled(version, time.time_ns()) else object()

    @property
    def config(self) -> RunConfig:
        """Its config. Raises RunError where it cannot be read."""
        if self._config is None:
            raise RunError(self.fault)
        return self._config


@dataclass(frozen=True, eq=False)
class Listing:
    """The runs of a folder at one look. The same object is returned as long as no run has changed."""

    entries: tuple[Entry, ...]
    """By name, those that cannot be read among them."""

    @cached_property
    def readable(self) -> tuple[Entry, ...]:
        """Those that can be read, oldest first."""
        found = (entry for entry in self.entries if not entry.fault)
        return tuple(sorted(found, key=lambda entry: (entry.created, entry.name)))

    @cached_property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with the others: a sentence each, by name."""
        return tuple(entry.fault for entry in self.entries if entry.fault)


def listing(root: Path = ROOT) -> Listing:
    """What lies below a folder; below ROOT also the runs of the package whose names are free."""
    key = (root, "" if root.is_absolute() else os.getcwd())
    shelf = _shelves.get(key)
    if shelf is None:
        shelf = _Shelf(root)
        _shelves.put(key, shelf, 1)
    return shelf.listing()


def entry_of(run: Run) -> Entry:
    """What a list says of one run, wherever it lies."""
    return _read(run)


def list_runs(root: Path = ROOT) -> list[Run]:
    """The readable runs below a folder, and those of the package below ROOT, oldest first."""
    return [entry.run for entry in listing(root).readable]


def unreadable(root: Path = ROOT) -> list[str]:
    """What is wrong with the other runs below a folder: a sentence each, by name."""
    return list(listing(root).faults)


@dataclass(frozen=True)
class _Known:
    """An entry, and what it was made from."""

    versions: Versions
    entry: Entry
    lasts: bool
    """Does it hold until one of the versions is another?"""


class _Shelf:
    """A folder of runs, and what the last look at it found."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._looking = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._listing = Listing(())
        self._looked = 0.0, -1

    def listing(self) -> Listing:
        """What a look finds; the look of a moment ago where nothing can have been missed that its own clicks did."""
        with self._looking:
            changes, (when, before) = runs.changes(), self._looked
            if changes != before or time.monotonic() - when >= SHARED_FOR:
                self._listing = self._look()
                self._looked = time.monotonic(), changes
            return self._listing

    def _look(self) -> Listing:
        now = time.time_ns()
        looked = {folder: self._known_of(folder, now) for folder in _folders(self.root)}
        self._known = {folder: known for folder, known in looked.items() if known is not None}
        found = sorted((known.entry for known in self._known.values()), key=lambda entry: entry.name)
        before = self._listing.entries
        same = len(found) == len(before) and all(map(is_, found, before))
        return self._listing if same else Listing(tuple(found))

    def _known_of(self, folder: str, now: int) -> _Known | None:
        """What is known of a run, from before where nothing of it has changed; None where there is no run."""
        versions = _versions(folder)
        if isinstance(versions[0], int):
            return None
        known = self._known.get(folder)
        if known is None or known.versions != versions or not known.lasts or not _has_its_text(known.entry):
            entry = _read(Run(Path(folder)))
            if known is not None and _say_the_same(known.entry, entry):
                entry = known.entry
            settled = all(isinstance(each, int) or is_settled(each, now) for each in versions)
            return _Known(versions, entry, settled and not entry.fault and not _has_links(entry))
        entry = known.entry
        if entry.state.live and (state := entry.run.state) != entry.state:  # a process ends without a word
            return replace(known, entry=replace(entry, state=state))
        return known


_shelves: Memory[tuple[Path, str], _Shelf] = Memory(MOST_FOLDERS)


def _folders(root: Path) -> list[str]:
    """What may be a run below a folder, and below ROOT in the package."""
    found = {name: os.path.join(root, name) for name in _names(root)}
    if root == runs.ROOT:
        brought = {name: os.path.join(runs.PACKAGED, name) for name in _names(runs.PACKAGED)}
        found = brought | found
    return list(found.values())


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _versions(folder: str) -> Versions:
    found: list[Version | int] = []
    for name in FILES:
        try:
            found.append(version_of(os.stat(f"{folder}/{name}")))
        except OSError as error:
            if not found:
                return (error.errno or -1,)
            found.append(error.errno or -1)
    return tuple(found)


def _say_the_same(one: Entry, other: Entry) -> bool:
    return all(getattr(one, each.name) == getattr(other, each.name) for each in dataclasses.fields(Entry))


def _has_links(entry: Entry) -> bool:
    """Do files of weights lie elsewhere, where they may come and go without a sign in the run's own folder?"""
    return any(path.is_symlink() for path in (entry.run.folder / "snapshots").glob("step-*"))


def _has_its_text(entry: Entry) -> bool:
    """Are the words at hand that a run has read, if it has read any, and the same as ever?"""
    task = entry.config.task
    if not task.text:
        return True
    try:
        shelf.register(entry.run.folder / shelf.TEXT_FILE, task.text, task.split, task.min_count)
    except (ValueError, OSError):
        return False
    return True


def _read(run: Run) -> Entry:
    """A run's entry from its files."""
    try:
        _ = run.name.encode()
        device, measured = str(run.card.get("device", "")), run.evaluation or {}
        numbers = measured.get("second_half"), measured.get("perplexity")
        return Entry(run, "", run.state, run.created, device, tuple(run.snapshots()), *numbers, run.config)
    except UnicodeEncodeError:
        name = shortened(run.name)
        return Entry(run, f"the name of the folder {name} is no UTF-8 text: rename it", State("lost"))
    except (RunError, OSError) as error:
        return Entry(run, reason(error), State("lost"))
