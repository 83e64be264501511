"""The texts that can be learned from, from the command line: fetched, put in by hand, listed, and found by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from transformer.config import TEXT, ConfigError, TaskConfig
from transformer.foundation.foreign import quoted, shortened
from transformer.foundation.program import program
from transformer.text import download, shelf
from transformer.text.corpus import TextError
from transformer.text.tokens import split
from transformer.text.works import without_licence, works
from transformer.training.listing import listing
from transformer.training.runs import ROOT


def corpus(
    name: str | None = None, *, file: Path | None = None, url: str | None = None, remove: str | None = None
) -> None:
    """Download the works of Shakespeare, or add a text of your own. Without arguments, list the texts that are here.

    Parameters
    ----------
    name
        shakespeare, which is downloaded from Project Gutenberg once; or the path of a file.
    file
        A file to add under this name. Nothing is downloaded.
    url
        Where to download Shakespeare from. Default: Project Gutenberg.
    remove
        The key or the name of a text to remove.
    """
    if remove is not None:
        if name is not None or file is not None or url is not None:
            raise ConfigError(f"--remove takes no other option: `{program()} corpus --remove shakespeare`")
        print(f"{take_away(remove, ROOT)} is removed")
        return
    if name is None:
        if file is not None or url is not None:
            raise ConfigError(f"give the text a name: `{program()} corpus shakespeare --file PATH`")
        _list()
        return
    if url is not None and not url.startswith(("http://", "https://")):
        raise ConfigError(f"url must begin with http:// or https://, not {shortened(url)}")
    key = shelf.take(file, name) if file is not None else _found(name, url)
    print(f"{key}: {described(key)}")


def take_away(wanted: str, root: Path) -> str:
    """Remove a text by its key or its name; the key. Raises TextError where there is none, or where a training that is
    under way below `root` reads it."""
    key = shelf.at_hand_as(wanted)
    if not key:
        at_hand = ", ".join(shelf.keys())
        raise TextError(f"there is no text {quoted(wanted)} here{f'; there is {at_hand}' if at_hand else ''}")
    readers = [each.name for each in listing(root).readable if each.config.task.text == key and each.state.live]
    if readers:
        raise TextError(f"{key} is being read by {', '.join(readers)}: stop the training first")
    shelf.remove(key)
    return key


def resolved(task: TaskConfig) -> TaskConfig:
    """The task with its text's key in place of a name or a path. Raises TextError where there is no such text."""
    if task.task != TEXT:
        if task.text:
            raise ConfigError(f"the task {task.task} reads no text: leave --text out, or say --task text")
        return task
    if not task.text:
        raise TextError("which text? Say --text shakespeare, or name a file")
    return replace(task, text=shelf.resolve(task.text))


def described(key: str) -> str:
    """What is in a text: its works, and its tokens when it is split at the boundaries of words."""
    text = without_licence(shelf.read(key))
    many, tokens = len(works(text)), split(text, "words")
    return f"{many} work{'s' * (many > 1)}, {len(tokens):,} tokens, {len(set(tokens)):,} of them distinct"


def _found(name: str, url: str | None) -> str:
    """The text of that name; Shakespeare is fetched if it is not here."""
    try:
        key = shelf.resolve(name)
    except TextError:
        if name != download.NAME:
            raise
    else:
        if name == download.NAME:
            print(f"the works of Shakespeare are already here, in {shelf.folder()}")
        return key
    return _fetched(url or "")


def _fetched(url: str) -> str:
    """Shakespeare, with a bar that shows how much of him is here."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("shakespeare", total=None)
        return download.download(url, lambda done, total: progress.update(bar, completed=done, total=total or None))


def _list() -> None:
    at_hand = shelf.keys()
    for key in at_hand:
        print(f"{key}: {described(key)}")
    if not at_hand:
        print(f"there are no texts in {shelf.folder()}: download one with `{program()} corpus shakespeare`")
