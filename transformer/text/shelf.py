"""The texts at hand: files in a cache, each under its key; and the excerpts that go with runs.

A key names its contents, so the same key means the same text everywhere.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

from transformer.foundation import machine
from transformer.foundation.atomic_files import sweep, write_whole
from transformer.foundation.checks import reason
from transformer.foundation.foreign import quoted, read_bytes, shortened
from transformer.foundation.program import program
from transformer.foundation.regular_files import open_file, require_file
from transformer.text.corpus import Corpus, Excerpt, TextError

LARGEST = 20 * 2**20
"""Bytes of a text."""
TOGETHER = 200 * 2**20
"""Bytes of all texts."""
SHORTEST = 1000
"""Characters of one: a tenth is held out, and there must be something to learn."""
KEY = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)
"""What the key of a text may be: the end of its name, and the beginning of its digest."""
TEXT_FILE = "text.npz"
"""Where a run folder has what it knows of its text."""
GONE = ".removed"
"""How the file of the text ends that was removed last, and can be had back."""
_excerpts: dict[tuple[str, str, int], Path] = {}
_marks: dict[tuple[str, str, int], str] = {}
"""What each excerpt held when it was first met: whatever else comes under its key is refused."""
_cutting = threading.Lock()


def folder() -> Path:
    """Where texts lie: $ATTENTION_LAB_CACHE, or the user's cache."""
    return machine.folder() / "texts"


def decoded(content: bytes, name: str) -> str:
    """A file's text, with line ends as they are in Python. Raises TextError, with a sentence, for what is none."""
    name = shortened(name)
    if len(content) > LARGEST:
        raise TextError(_too_large(name))
    if b"\0" in content[:4096] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TextError(f"{name} is not a text: it holds binary data")
    try:
        text = content.decode("utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(f"{name} is not encoded in UTF-8 (byte {error.start + 1}): save it as UTF-8 first") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if len(text.strip()) < SHORTEST:
        raise TextError(f"{name} is too short: a text needs {SHORTEST} characters, and it has {len(text.strip())}")
    return text


def put(name: str, content: bytes) -> str:
    """Put a file's text on the shelf; its key. Raises TextError, with a sentence, for what cannot be used."""
    text = decoded(content, name)
    stem = re.sub(r"[^a-z0-9]+", "-", Path(name).stem.lower()).strip("-")[:40] or "text"
    key = f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    if not _file(key).is_file():
        encoded = text.encode()
        there = sum(path.stat().st_size for path in folder().glob("*.txt"))
        if there + len(encoded) > TOGETHER:
            raise TextError(
                f"the texts here may have {TOGETHER // 2**20} MB together, and with {shortened(name)} they would have "
                "more: remove one first"
            )
        folder().mkdir(parents=True, exist_ok=True)
        sweep(folder())
        write_whole(_file(key), encoded)
    return key


def remove(key: str) -> None:
    """Take a text off the shelf; `restore` brings it back, until another is removed. Raises TextError.

    Runs that have read it keep what they need to be looked at.
    """
    path = _present(key)
    try:
        for gone in folder().glob(f"*{GONE}"):
            gone.unlink()
        path.rename(path.with_suffix(GONE))
    except OSError as error:
        raise TextError(f"{key} cannot be removed: {error.strerror or error}") from None


def restore(key: str) -> None:
    """Bring back the text that was removed last. Raises TextError where it is another, or none."""
    path = _file(key)
    if path.is_file():
        return
    try:
        path.with_suffix(GONE).rename(path)
    except OSError:
        raise TextError(f"{key} cannot be restored: add its file again") from None


def take(path: Path, name: str = "") -> str:
    """Put a file on the shelf, under its own name or another; its key. Raises TextError, with a sentence."""
    try:
        with open_file(path) as file:
            content = file.read(LARGEST + 1)  # what is larger is refused, and need not be read to its end
            size = os.fstat(file.fileno()).st_size
    except (FileNotFoundError, ValueError):  # ValueError: no path has a zero byte
        raise TextError(f"there is no file {shortened(str(path))}") from None
    except OSError as error:
        raise TextError(f"{shortened(str(path))} cannot be read: {reason(error)}") from None
    if size > LARGEST:
        raise TextError(_too_large(shortened(path.name)))
    return put(name or path.name, content)


def read(key: str) -> str:
    """A text on the shelf, whole. Raises TextError where it is not here."""
    return _text(_present(key))


def keys() -> tuple[str, ...]:
    """The texts that can be learned from, by name."""
    return tuple(sorted(path.stem for path in folder().glob("*.txt") if not path.name.startswith(".")))


def resolve(wanted: str) -> str:
    """The key of a text by its key, by the name that is left of it, or by a file's path. Raises TextError."""
    at_hand = keys()
    if any(key == wanted for key, *_ in list(_excerpts)):
        return wanted
    if found := at_hand_as(wanted):
        return found
    if _leads_somewhere(wanted):
        return take(Path(wanted))
    if wanted == "shakespeare":
        raise TextError(
            f"the works of Shakespeare are not here yet: download them with `{program()} corpus shakespeare`"
        )
    known = f"name a file, or one of {', '.join(at_hand)}" if at_hand else "name a file"
    raise TextError(f"there is no text {quoted(wanted)}: {known}")


def _leads_somewhere(wanted: str) -> bool:
    """Is it the path of something, a folder aside?"""
    try:
        path = Path(wanted)
        return path.exists() and not path.is_dir()
    except (OSError, ValueError):  # longer than any path
        return False


def at_hand(key: str) -> bool:
    """Is a text on the shelf?"""
    return key in keys()


def at_hand_as(wanted: str) -> str:
    """The key of a text on the shelf by its key or its name, or nothing. Raises TextError where several have it."""
    at_hand = keys()
    named = [key for key in at_hand if key.rpartition("-")[0] == wanted]
    if wanted not in at_hand and len(named) > 1:
        raise TextError(f"there are several texts named {shortened(wanted)}: say which of {', '.join(named)}")
    return wanted if wanted in at_hand else "".join(named)


def register(path: Path, key: str, by: str, min_count: int) -> None:
    """Let the excerpt in this file be found. Raises TextError where its words are not those known by this key, and
    where it is no regular file."""
    try:
        require_file(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise TextError(f"its {path.name} cannot be used: {reason(error)}") from None
    try:
        mark = _mark(path, path.stat().st_mtime_ns)
    except TextError:
        mark = ""  # whoever reads it is told
    if mark:
        _expect((key, by, min_count), mark, f"the words in {shortened(path.parent.name)}/{path.name}")
    known = _excerpts.get((key, by, min_count))
    if known is None or not known.is_file():
        _excerpts[key, by, min_count] = path


def _expect(key: tuple[str, str, int], mark: str, what: str) -> None:
    """Is this what was first met by a key? Two vocabularies under one name would read each other's tokens wrongly."""
    if _marks.setdefault(key, mark) != mark:
        raise TextError(
            f"{what} are not those of {shortened(key[0])}, in {key[1]}, that others here have read: they share a name"
        )


@lru_cache(maxsize=1024)
def _mark(path: Path, stamp: int) -> str:
    return Excerpt.load(path).mark


def bring(folder: Path, config: Any) -> None:
    """Let the task of a stored config, whatever that holds, find the words that lie in its run's folder."""
    task = config.get("task") if isinstance(config, dict) else None
    if isinstance(task, dict) and task.get("text"):
        key, by, min_count = (task.get(name) for name in ("text", "split", "min_count"))
        if isinstance(key, str) and isinstance(by, str) and isinstance(min_count, int):
            register(folder / TEXT_FILE, key, by, min_count)


def excerpt(key: str, by: str, min_count: int) -> Excerpt:
    """What a run knows of its text: from its own file, else from the text. Raises TextError where neither is here."""
    stored = _excerpts.get((key, by, min_count))
    if stored is not None and stored.is_file():
        return _loaded(stored, stored.stat().st_mtime)
    return corpus(key, by, min_count).excerpt


def corpus(key: str, by: str, min_count: int) -> Corpus:
    """The whole text, cut; it is cut once. Raises TextError where it is not here."""
    path = _present(key)
    with _cutting:
        found = _cut(path, by, min_count)
    _expect((key, by, min_count), found.excerpt.mark, "the words of the text")
    return found


@lru_cache(maxsize=4)
def _cut(path: Path, by: str, min_count: int) -> Corpus:
    return Corpus.of(_text(path), by, min_count)


@lru_cache(maxsize=32)
def _loaded(path: Path, stamp: float) -> Excerpt:
    return Excerpt.load(path)


def _text(path: Path) -> str:
    """The text in a file of the shelf. Raises TextError where somebody has put something else there."""
    try:
        return read_bytes(path, 2 * LARGEST).decode()
    except (OSError, ValueError) as error:
        raise TextError(f"the text {shortened(path.stem)} cannot be read: {reason(error)}") from None


def _file(key: str) -> Path:
    """Where the text of a key lies, or would lie. Raises TextError for what is no key."""
    if not KEY.fullmatch(key):
        raise TextError(_missing(key))
    return folder() / f"{key}.txt"


def _present(key: str) -> Path:
    """The file of a text that is on the shelf. Raises TextError where there is none."""
    path = _file(key)
    try:
        require_file(path)
    except FileNotFoundError:
        raise TextError(_missing(key)) from None
    except OSError as error:
        raise TextError(f"the text {key} cannot be read: {reason(error)}") from None
    return path


def _missing(key: str) -> str:
    return f"the text {shortened(key) or '(none)'} is not here: name a file with --text, or choose one that is here"


def _too_large(name: str) -> str:
    return f"{name} is larger than {LARGEST // 2**20} MB, the most that a text may have"
