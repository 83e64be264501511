"""Masks kept by name, in one small file beside the runs. No Streamlit here.

The file is read anew for each answer: another session, or a person, may have written it. One that cannot be read is
left as it is, and nothing is written over it.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

from transformer import masks
from transformer.foundation.atomic_files import sweep, write_whole
from transformer.foundation.foreign import read_record

FILE = "masks.json"
MOST, MOST_LETTERS = 100, 40
"""Masks in a book, and letters in a name."""
_WRITING = threading.Lock()


class BookError(ValueError):
    """What cannot be done with the kept masks; the message is one sentence."""


def kept(root: Path) -> dict[str, str]:
    """The kept masks of a folder of runs, each as `masks.parse` reads it, by name. Raises BookError."""
    path = root / FILE
    try:
        book: dict[str, str] = read_record(path)["masks"]
        for name, text in book.items():
            check_name(name)
            masks.parse(text)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BookError(f"{FILE} cannot be read as a list of masks; it was left as it is") from None
    return dict(sorted(book.items()))


def keep(root: Path, name: str, mask: masks.Mask) -> None:
    """Keep a mask under a name that is not taken. Raises BookError with the reason why not."""
    check_name(name)
    with _WRITING:
        book = kept(root)
        if name in book:
            raise BookError(f"there is a mask “{name}” already: choose another name")
        if len(book) >= MOST:
            raise BookError(f"{MOST} masks are kept already: delete one first")
        _write(root, {**book, name: str(mask)})


def drop(root: Path, name: str) -> masks.Mask:
    """Delete a kept mask, and return it, so that it can be kept again. Raises BookError when there is none."""
    with _WRITING:
        book = kept(root)
        if name not in book:
            raise BookError(f"the mask “{name}” was already deleted")
        text = book.pop(name)
        _write(root, book)
    return masks.parse(text)


def check_name(name: str) -> None:
    """Can a mask be called that? Raises BookError when not."""
    if not name or name != name.strip() or not name.isprintable():
        raise BookError("a name needs at least one letter, and may not have line breaks or spaces around it")
    if len(name) > MOST_LETTERS:
        raise BookError(f"a name may have {MOST_LETTERS} letters at most, and this one is longer")


def _write(root: Path, book: dict[str, str]) -> None:
    try:
        root.mkdir(parents=True, exist_ok=True)
        sweep(root)
        write_whole(root / FILE, json.dumps({"masks": book}, ensure_ascii=False, indent=1).encode())
    except OSError as error:
        raise BookError(f"{FILE} cannot be written: {error.strerror or error}") from None
