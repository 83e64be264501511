"""Files that could not be used, remembered: none is read again in vain until it is another."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from transformer.foundation.checks import ConfigError, UserError, reason
from transformer.foundation.foreign import DAMAGED

P = ParamSpec("P")
T = TypeVar("T")
MOST = 4096
"""Failures that one reader remembers."""


class Unusable(UserError):
    """A file that cannot be used; the message is a few words that say why."""


def remembering_failures(read: Callable[Concatenate[Path, P], T]) -> Callable[Concatenate[Path, P], T]:
    """The same reader of a file, which reads no file twice that it cannot use.

    Of a failure its reason is kept, by the file's path, its date and its size, and by whatever else the reader was
    given. A ConfigError is not kept: what a run needs beside its files may come later. Raises Unusable for what a
    damaged file ends in, and OSError.
    """
    known: OrderedDict[Hashable, str] = OrderedDict()
    writing = threading.Lock()

    @functools.wraps(read)
    def reader(path: Path, *given: P.args, **named: P.kwargs) -> T:
        there = path.stat()
        key = (path, there.st_mtime_ns, there.st_size, there.st_ino, given, *named.items())
        if (why := known.get(key)) is not None:
            raise Unusable(why)
        try:
            return read(path, *given, **named)
        except (ConfigError, MemoryError):
            raise
        except DAMAGED as error:
            with writing:
                known[key] = reason(error)
                if len(known) > MOST:
                    known.popitem(last=False)
            raise Unusable(reason(error)) from error

    return reader
