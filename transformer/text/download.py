"""Shakespeare from Project Gutenberg, fetched once: by pooch, and onto the shelf only when it is whole and a text."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from transformer.foundation.program import program
from transformer.text import shelf
from transformer.text.corpus import TextError

NAME = "shakespeare"
ADDRESS = "https://www.gutenberg.org/cache/epub/100/pg100.txt"
"""The Complete Works of William Shakespeare, ebook 100 of Project Gutenberg, as plain text in UTF-8."""
PATIENCE = (10.0, 30.0)
"""Seconds until the server has to be there, and between two pieces of what it sends."""
PIECE = 2**16
"""Bytes fetched at a time."""


def by_hand() -> str:
    """What to do where nothing can be downloaded."""
    return f"download it elsewhere, and add it with `{program()} corpus shakespeare --file PATH`"


def address() -> str:
    """Where it is fetched from: $ATTENTION_LAB_SHAKESPEARE, or Project Gutenberg."""
    return os.environ.get("ATTENTION_LAB_SHAKESPEARE") or ADDRESS


def download(url: str = "", said: Callable[[int, int], None] = lambda done, total: None) -> str:
    """Fetch the works of Shakespeare and put them on the shelf; their key.

    `said` is told how many bytes have come, and of how many; 0 where the server does not say. Raises TextError, with a
    sentence that says what to do, when they do not come or are no text; of half a download nothing is left.
    """
    import pooch
    import requests

    url = url or address()
    pooch.get_logger().setLevel("WARNING")  # it would say where its own copy lies
    # As they are, not packed: then the length that the server names is the one that is counted.
    plain = {"Accept-Encoding": "identity"}
    fetch = pooch.HTTPDownloader(progressbar=_Progress(said), chunk_size=PIECE, timeout=PATIENCE, headers=plain)
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = Path(pooch.retrieve(url, known_hash=None, fname="text", path=folder, downloader=fetch))
            content = path.read_bytes()
        except (OSError, ValueError) as error:  # whatever goes wrong between two machines is one of these in requests
            raise TextError(f"{url} could not be downloaded: {_why(error, requests)}. Please {by_hand()}") from None
    if content.lstrip()[:15].lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise TextError(f"{url} sent a web page instead of a text: {by_hand()}")
    return shelf.put(f"{NAME}.txt", content)


class _Progress:
    """What pooch asks of a progress bar, told to somebody else; too much is refused while it comes."""

    def __init__(self, said: Callable[[int, int], None]) -> None:
        self.said, self.done, self.total = said, 0, 0

    def update(self, count: int) -> None:
        self.done += count
        if self.done > shelf.LARGEST + PIECE:
            raise ValueError(f"it is larger than {shelf.LARGEST // 2**20} MB")
        self.said(min(self.done, self.total or self.done), self.total)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        pass


def _why(error: Exception, requests) -> str:
    """What went wrong, in a few words."""
    kinds = requests.exceptions
    if isinstance(error, kinds.HTTPError) and error.response is not None:
        return f"the server says {error.response.status_code} {error.response.reason}".rstrip()
    if isinstance(error, kinds.Timeout):
        return "the server does not answer"
    if isinstance(error, kinds.ChunkedEncodingError):
        return "the connection was lost"
    if isinstance(error, kinds.ConnectionError):
        return "there is no connection"
    return str(error) or type(error).__name__
