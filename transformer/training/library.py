"""What is done with whole runs: they are renamed, deleted, brought back, and told apart. No PyTorch here.

Each of these is one rename of a folder: it happens wholly or not at all, and nobody finds half a run. A run that is
being trained is left alone, for its process would go on writing to the place where it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer.config import RunConfig
from transformer.foundation.checks import UserError
from transformer.training.lock import NAME, Occupied, hold
from transformer.training.runs import Run, note_change

TRASH = ".trash"
KEEP, KEEP_DAYS = 20, 7.0
"""How many deleted runs can be had back, and for how long."""
MOST_LETTERS, MOST_BYTES = 80, 200
"""The longest name: legible in a menu, and with room for a suffix on every file system."""
FORBIDDEN = '/\\:*?"<>|,'
"""Separators, what other systems forbid, and the comma, which stands between names in a link."""
RESERVED = {"compiled", "con", "prn", "aux", "nul", *(f"{port}{i}" for port in ("com", "lpt") for i in range(10))}
"""The model that is compiled by hand, and the devices of Windows."""
WORDS = {
    "min_length": "shortest length",
    "n_layers": "layers",
    "n_heads": "heads",
    "d_model": "d_model",
    "d_ff": "d_ff",
    "query_key_gain": "gain of queries and keys",
    "norm_kind": "kind of norm",
    "max_steps": "most steps",
    "batch_size": "batch",
}


class LibraryError(UserError):
    """What cannot be done with a run; the message is one sentence."""


@dataclass(frozen=True)
class Trashed:
    """A deleted run, which can be had back: its folder lies in .trash/<when, in nanoseconds>/<name>."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def deleted(self) -> float:
        """When, in Unix time."""
        return int(self.folder.parent.name) / 1e9

    @property
    def root(self) -> Path:
        """The folder of runs that it was deleted from."""
        return self.folder.parents[2]


def check_name(name: str) -> None:
    """Can a run be called that? Raises LibraryError when not: a name is a plain folder name on every system."""
    _require(bool(name.strip()), "a name has at least one letter or digit")
    _require(name.isprintable(), "a name has no line breaks and no invisible characters")
    found = next((c for c in name if c in FORBIDDEN), None)
    _require(found is None, f"a name cannot hold “{found}”")
    _require(name == name.strip(), "a name neither begins nor ends with a space")
    _require(not name.startswith(".") and not name.endswith("."), "a name neither begins nor ends with a dot")
    _require(name.casefold().split(".")[0] not in RESERVED, f"the name {name} is reserved: choose another")
    _require(len(name) <= MOST_LETTERS, f"a name has at most {MOST_LETTERS} letters, and this one has {len(name)}")
    size = len(name.encode())
    _require(size <= MOST_BYTES, f"a name takes at most {MOST_BYTES} bytes on the disk, and this one takes {size}")


def rename(run: Run, name: str) -> Run:
    """Give a run another name, and return it under that. Raises LibraryError with the reason why not."""
    check_name(name)
    if name == run.name:
        return run
    target = run.folder.with_name(name)
    _move(run, target)
    return Run(target)


def delete(run: Run) -> Trashed:
    """Take a run away; `restore` brings it back. Raises LibraryError while it is trained, or when it cannot be."""
    root = run.folder.parent
    trashed = Trashed(root / TRASH / str(time.time_ns()) / run.name)
    _move(run, trashed.folder)
    empty_trash(root)
    return trashed


def restore(trashed: Trashed) -> Run:
    """Bring a deleted run back, under a fresh name if its own is taken. Raises LibraryError when it is gone."""
    _require(trashed.folder.is_dir(), f"{trashed.name} is gone for good")
    try:
        run = settle(trashed.folder, trashed.root, trashed.name)
    except OSError as error:
        raise LibraryError(f"{trashed.name} cannot be brought back: {error.strerror or error}") from None
    with contextlib.suppress(OSError):
        trashed.folder.parent.rmdir()
    return run


def trash(root: Path) -> list[Trashed]:
    """The deleted runs that can be had back, the newest first."""
    cards = [card for card in (root / TRASH).glob("*/*/run.json") if card.parts[-3].isdecimal()]
    found = [Trashed(card.parent) for card in cards]
    return sorted(found, key=lambda trashed: trashed.deleted, reverse=True)


def empty_trash(root: Path, keep: int = KEEP, days: float = KEEP_DAYS) -> None:
    """Delete for good what was deleted more than `days` ago, and all but the `keep` newest."""
    now = time.time()
    for place, trashed in enumerate(trash(root)):
        if place >= keep or now - trashed.deleted > days * 86_400:
            shutil.rmtree(trashed.folder.parent, ignore_errors=True)


def settle(folder: Path, root: Path, name: str) -> Run:
    """Move a folder among the runs, under `name` or, where that is taken, name-2, name-3, …"""
    for i in range(1, 10_000):
        suffix = "" if i == 1 else f"-{i}"
        target = root / f"{name}{suffix}"
        if not os.path.lexists(target):
            with contextlib.suppress(FileExistsError):  # somebody was quicker
                _claim(folder, target)
                return Run(target)
    raise LibraryError(f"every name like {name} is taken")


def changes(config: RunConfig, before: RunConfig) -> list[str]:
    """What differs from another run, a few words each: "heads 4 → 1"; nothing when the settings are the same.

    What merely follows is left out: a feed-forward layer four times as wide as the model, and the rate's decay.
    """
    found = []
    for part in dataclasses.fields(RunConfig):
        new, old = getattr(config, part.name), getattr(before, part.name)
        for field in dataclasses.fields(new):
            was, now = getattr(old, field.name), getattr(new, field.name)
            if was != now and not (_follows(field.name, config) and _follows(field.name, before)):
                word = WORDS.get(field.name, field.name.replace("_", " "))
                if field.name == "mask":
                    was, now = old.mask_label, new.mask_label
                if field.name == "norm_kind":
                    was, now = old.kind_of_norm.title, new.kind_of_norm.title
                found.append(f"{word} {_said(was)} → {_said(now)}")
    return found


def _follows(field: str, config: RunConfig) -> bool:
    """Is this field what it would be if nobody had said a word about it?"""
    if field == "d_ff":
        return config.model.d_ff == 4 * config.model.d_model
    if field == "decay_after":
        own = dataclasses.replace(config.training, decay_after=None)
        return dataclasses.replace(config, training=own).training.decay_after == config.training.decay_after
    return False


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _move(run: Run, target: Path) -> None:
    """Move a run to where nothing is, while nobody is at work on it and nobody can begin."""
    name, lock = run.name, run.folder / NAME
    _require((run.folder / "run.json").is_file(), f"there is no run {name} any more")
    _require(not run.packaged, f"{name} comes with the installed package, so it can only be looked at")
    _require(not run.under_way, f"{name} is {run.state.status}: stop it first")
    known = lock.exists()
    try:
        with hold(run.folder):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                _claim(run.folder, target)
            finally:
                if not known:  # no trace of having looked: a shipped run comes back as it was
                    (lock if lock.exists() else target / NAME).unlink(missing_ok=True)
    except Occupied:
        raise LibraryError(f"a process is still at work on {name}: try again in a moment") from None
    except FileExistsError:
        raise LibraryError(f"the name {target.name} is taken: choose another") from None
    except OSError as error:
        raise LibraryError(f"{name} cannot be moved: {error.strerror or error}") from None


def _claim(folder: Path, target: Path) -> None:
    """Rename, but never onto anything: an empty folder claims the name first. Raises FileExistsError."""
    target.mkdir()
    if os.name == "nt":  # renames onto nothing at all
        target.rmdir()
    try:
        folder.rename(target)
    except OSError:
        with contextlib.suppress(OSError):
            target.rmdir()
        raise
    note_change()


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise LibraryError(sentence)
