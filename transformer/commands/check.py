"""The command that checks a student's code, or a folder of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from transformer.config import ConfigError
from transformer.foundation.foreign import shortened

if TYPE_CHECKING:
    from transformer.checking.isolation.limits import Limits


def check(
    what: str | None = None,
    *,
    many: Path | None = None,
    name: str = "",
    kind: str = "",
    json_: Annotated[bool, Parameter(name="--json")] = False,
    seconds: float = 10.0,
    memory: int = 2048,
) -> int:
    """Check code of your own: is it right, and if not, which mistake is it?

    It takes a function of query, key, value and mask, a class of multi-head attention, a positional encoding, a
    function that makes a mask, the class of a whole decoder, or a function that cuts tokens into inputs and targets.
    Conventions are recognised and named: True = seen or hidden, one packed layer or three, batch or position first.
    The exit code is 0 for right, 1 for wrong, 2 where the code could not be run, and 3 where nothing is wrong and not
    all was compared; of a folder it is 1 where any file is wrong, else 3, else 2, else 0.

    The code runs in a process of its own, with limits on time, memory and printed text. On Linux it can start no other
    process, use no network, write only into a temporary folder, and read only Python, the system's libraries and its
    own folder; that needs libseccomp and Landlock, and `isolated` in the JSON says what was in force. On macOS memory,
    network and files are not limited. On Windows nothing is run. Nothing keeps code from imitating a right answer.

    Parameters
    ----------
    what
        FILE:NAME. The name can be left out where the file defines only one function or class.
    many
        A folder: every .py file below it is checked by itself, and a table is printed.
    name
        The name to look for in each file of a folder.
    kind
        attention, module, positions, mask, decoder, targets or piece. Default: guessed from the names.
    json_
        Print JSON: one object, or for a folder one object a line, as they are ready.
    seconds
        Seconds for which the code may compute; in all it may take three times as long.
    memory
        MB that it may take beyond what PyTorch takes.
    """
    if (what is None) == (many is None):
        raise ConfigError("say what to check: FILE:NAME, or --many FOLDER")

    from transformer.checking.isolation.limits import Limits

    limits = Limits(seconds=seconds, memory=memory)
    if many is not None:
        return _many(many, name, kind, limits, json_)

    from transformer.checking.check import check as checked

    assert what is not None
    file, _, named = what.rpartition(":") if not Path(what).exists() else (what, "", "")
    verdict = checked(Path(file or named), named if file else name, kind, limits)
    print(json.dumps(verdict.values()) if json_ else verdict.text())
    return verdict.code


def _many(folder: Path, name: str, kind: str, limits: Limits, json_: bool) -> int:
    """Check a folder: a line for each file, sorted at the end; the exit code of all."""
    from rich.console import Console
    from rich.table import Table

    from transformer.checking.check import check_many
    from transformer.checking.verdict import WORDS, of_many

    found = []
    with Console(stderr=True).status("checking …") as status:
        for verdict in check_many(folder, name, kind, limits):
            found.append(verdict)
            status.update(f"checking … {len(found)} ready")
            if json_:
                print(json.dumps(verdict.values()), flush=True)
    if not json_:
        table = Table("file", "kind", "verdict", "why", box=None, pad_edge=False)
        for verdict in sorted(found, key=lambda each: each.file):
            table.add_row(*(_plain(each) for each in (verdict.file, verdict.kind, verdict.word, verdict.headline)))
        Console(width=None if sys.stdout.isatty() else 200, highlight=False).print(table)
        counts = {word: sum(each.word == word for each in found) for word in WORDS}
        print(", ".join(f"{number} {word}" for word, number in counts.items() if number or word != "not decided"))
    return of_many(found)


def _plain(text: str) -> str:
    """Text that a terminal shows as it stands."""
    from rich.markup import escape

    return escape(shortened(text, 400))
