"""A run as one file, to be carried to another machine: a plain zip of what is in its folder.

Whatever such a file holds, reading it executes nothing, writes nowhere but into a hidden folder of its own, and takes
no more room than it says; among the runs there appears a whole run, or nothing. zipfile packs and extracts; what is in
such a file is checked here, for zipfile asks neither how much it is nor whether a run has it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import stat
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from transformer.foundation.checks import reason
from transformer.foundation.foreign import MOST_WORDS, open_zip, read_bytes, record, shortened
from transformer.foundation.regular_files import open_file
from transformer.text.shelf import TEXT_FILE
from transformer.training.exchange import inspection
from transformer.training.library import TRASH, LibraryError, check_name, settle
from transformer.training.runs import Run, RunError, new_folder

SUFFIX = ".attention-run.zip"
MOST_BYTES = 100 * 2**20
"""The largest run that travels in one file, packed or unpacked."""
MOST_FILES = 1000
NAMES = (
    "run.json",
    "state.json",
    "metrics.jsonl",
    TEXT_FILE,
    "evaluation.json",
    "example.npz",
    "film.npz",
    "resume.safetensors",
)
SNAPSHOT = re.compile(r"snapshots/step-\d{6,8}\.safetensors", re.ASCII)
ABANDONED = 86_400.0
"""Seconds after which a file that somebody was reading has been given up."""
_DAWN = (1980, 1, 1, 0, 0, 0)
"""The date of every file inside: the same run always makes the same bytes."""


def obstacle(run: Run) -> str:
    """Why a run cannot be packed now, in a sentence; empty when it can."""
    state = run.state
    if state.live and state.status != "paused":
        return f"{run.name} is {state.status}: stop it first"
    try:
        _, size = run.card, sum(path.stat().st_size for path in _parts(run))
    except (RunError, OSError) as error:
        return str(error)
    return f"{run.name} is too large for one file ({_size(size)}): copy its folder" if size > MOST_BYTES else ""


def pack(run: Run) -> bytes:
    """A run that is not being trained, as one file. Raises LibraryError when it cannot be."""
    fault, file = obstacle(run), io.BytesIO()
    _require(not fault, fault)
    try:
        with zipfile.ZipFile(file, "w") as packed:
            for path in _parts(run):
                packed.writestr(_info(path.relative_to(run.folder).as_posix()), _content(path))
    except (OSError, ValueError) as error:  # ValueError: it has just grown
        raise LibraryError(f"{run.name} cannot be packed: {reason(error)}") from None
    return file.getvalue()


def unpack(file: Path | io.BytesIO, root: Path, name: str | None = None) -> Run:
    """Put a packed run among those in `root`, under a name like `name`. Raises LibraryError with the reason why not.

    Everything is checked before anything appears there. Without a usable name it gets one that says what is in it; a
    taken one gets a number. What was still being trained when it was packed has stopped.
    """
    _sweep(root)
    try:
        with _opened(file) as packed, _hidden(root) as hidden:
            folder = Path(hidden) / "run"
            folder.mkdir()
            for entry in _checked(packed):
                packed.extract(entry, folder)
            run = Run(folder)
            state = inspection.inspect(run)
            if state.live:
                run.set_state("stopped", state.step, f"it was {state.status} when it was packed", state.memory)
            return settle(folder, root, _usable(name) or new_folder(root, run.config).name)
    except LibraryError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:  # ValueError: it points outside itself
        raise LibraryError(f"the file is damaged: {reason(error)}") from None
    except OSError as error:
        raise LibraryError(f"the run cannot be stored: {error.strerror or error}") from None


def name_of(filename: str) -> str:
    """What the run in a file was called: the file's name without its endings."""
    name = re.sub(r" ?\(\d+\)$", "", filename.removesuffix(".zip"))  # a browser numbers its second download
    return name.removesuffix(SUFFIX.removesuffix(".zip"))


@contextlib.contextmanager
def _opened(file: Path | io.BytesIO) -> Iterator[zipfile.ZipFile]:
    """The zip, once its last bytes say that its list of contents is of a sane length."""
    with contextlib.ExitStack() as stack:
        try:
            stream: IO[bytes] = stack.enter_context(open_file(file)) if isinstance(file, Path) else file
        except OSError as error:
            raise LibraryError(f"the file cannot be read: {reason(error)}") from None
        size = stream.seek(0, os.SEEK_END)
        _require(size <= MOST_BYTES, f"the file is too large ({_size(size)}): a run has at most {_size(MOST_BYTES)}")
        try:
            packed = stack.enter_context(open_zip(stream, MOST_FILES))
        except zipfile.BadZipFile:
            raise
        except ValueError as error:
            raise LibraryError(f"this is not a packed run: {shortened(reason(error))}") from None
        except RuntimeError as error:  # of a later version
            raise LibraryError(f"the file cannot be read: {shortened(reason(error))}") from None
        yield packed


def _checked(packed: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files to extract. Raises LibraryError unless every entry is one that a run has, once, and of a sane size."""
    entries = [entry for entry in packed.infolist() if entry.filename != "snapshots/"]
    _require(len(entries) <= MOST_FILES, f"the file lists too many files: a run has at most {MOST_FILES}")
    names = [entry.orig_filename for entry in entries]
    for entry, name in zip(entries, names, strict=True):
        said = shortened(name)
        parts = name.replace("\\", "/").split("/")
        outside = ".." in parts or not parts[0] or ":" in parts[0]
        _require(not outside, f"the file holds “{said}”, which would be written outside the run's folder")
        known = name in NAMES or SNAPSHOT.fullmatch(name)
        _require(bool(known) and entry.filename == name, f"the file holds “{said}”, which is no part of a run")
        kind = stat.S_IFMT(entry.external_attr >> 16)
        _require(kind in (0, stat.S_IFREG), f"the file holds “{said}”, which is a link and not a file")
        _require(names.count(name) == 1, f"the file holds “{said}” twice")
        plain = not entry.flag_bits & 1 and entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        _require(plain, f"“{said}” is encrypted, or compressed in an unusual way")
        most = MOST_WORDS if name.endswith(".json") else MOST_BYTES
        _require(entry.file_size <= most, f"“{said}” is too large ({_size(entry.file_size)})")
    size = sum(entry.file_size for entry in entries)
    _require(size <= MOST_BYTES, f"unpacked, the run is too large ({_size(size)}): {_size(MOST_BYTES)} at most")
    for name in ("run.json", "state.json"):
        _require(name in names, f"this is not a packed run: it has no {name}")
    _require(any(map(SNAPSHOT.fullmatch, names)), "the run in this file has no weights: there is no snapshot")
    return entries


def _hidden(root: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder beside the runs that no list shows, and that is gone afterwards."""
    place = root / TRASH
    place.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(prefix="incoming-", dir=place, ignore_cleanup_errors=True)


def _sweep(root: Path) -> None:
    """Take away what a killed process was reading long ago."""
    for left in (root / TRASH).glob("incoming-*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > ABANDONED:
                shutil.rmtree(left, ignore_errors=True)


def _usable(name: str | None) -> str | None:
    try:
        check_name(name or "")
    except LibraryError:
        return None
    return name


def _parts(run: Run) -> list[Path]:
    """The files that travel, in their order."""
    paths = [run.folder / name for name in NAMES]
    return [path for path in (*paths, *run.snapshots().values()) if path.is_file()]


def _content(path: Path) -> bytes:
    """What of a file travels: all of it but the name of this machine, which the state of a paused run holds."""
    content = read_bytes(path, MOST_BYTES)
    if path.name != "state.json":
        return content
    with contextlib.suppress(ValueError):  # a damaged one travels as it is
        state = record(content)
        if state.get("host"):
            return json.dumps(state | {"host": ""}, indent=1).encode()
    return content


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _DAWN)
    info.compress_type = zipfile.ZIP_DEFLATED if name.endswith(("json", "jsonl")) else zipfile.ZIP_STORED
    info.create_system, info.external_attr = 3, (stat.S_IFREG | 0o644) << 16
    return info


def _size(count: int) -> str:
    return f"{count / 2**20:,.0f} MB" if count >= 2**20 else f"{count / 1000:,.0f} kB"


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise LibraryError(sentence)
