"""Files read once for each of their versions: what one held, or why it cannot be used, is kept until it is another."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from transformer.foundation.checks import ConfigError, UserError, reason
from transformer.foundation.foreign import DAMAGED
from transformer.foundation.regular_files import NotAFile

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
MOST_BYTES = 8 * 2**20
"""Bytes of the files, all together, whose contents one reader keeps: lists of lists take forty times that in memory."""
AN_ENTRY = 2**8
"""Bytes that an entry counts for beside its file's."""
SETTLED_AFTER = 2_000_000_000
"""Nanoseconds for which a file may be rewritten without a change of its dates: some disks write whole seconds, or even
ones."""
Version = tuple[int, int, int, int, int]
"""Device, number on it, when its content and when anything of it was last changed, in nanoseconds, and its size."""
LASTING = (NotAFile, PermissionError)
"""What the system refuses until the file is another one; all other refusals may pass by themselves."""


class Unusable(UserError):
    """A file that cannot be used; the message is a few words that say why."""


def version_of(found: os.stat_result) -> Version:
    """The version of a file, of which the system has said this."""
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def is_settled(version: Version, now: int) -> bool:
    """Whatever changes the file from now on, in Unix nanoseconds, will it be another version?"""
    return abs(now - max(version[2:4])) >= SETTLED_AFTER


class Memory(Generic[K, V]):
    """What was last asked for by a key, so much of it that all weighs at most `most`. Threads may share it."""

    def __init__(self, most: int) -> None:
        self.most, self.weight = most, 0
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: K, value: V, weight: int) -> None:
        """Keep a value in place of the one before. What weighs more than all may together is not kept."""
        with self._lock:
            self._take(key)
            if weight > self.most:
                return
            self._kept[key] = value, weight
            self.weight += weight
            while self.weight > self.most:
                self._take(next(iter(self._kept)))

    def forget(self, key: K) -> None:
        with self._lock:
            self._take(key)

    def __len__(self) -> int:
        return len(self._kept)

    def _take(self, key: K) -> None:
        _, weight = self._kept.pop(key, (None, 0))
        self.weight -= weight


@dataclass(frozen=True)
class _Read:
    """What one version of a file came to."""

    version: Version
    settled: bool
    answer: Any = None
    why: str = ""
    """A few words, where it cannot be used."""
    refusal: tuple[type[OSError], int | None, str | None] | None = None
    """What the system said, where it does not let the file be read."""


def read_once(
    *, most: int = MOST_BYTES, goes_on: bool = False, answers: bool = True
) -> Callable[[Callable[Concatenate[Path, P], T]], Callable[Concatenate[Path, P], T]]:
    """The same reader of a file, which reads no version of it twice.

    What it returns is kept and shared, so it has to be of values that nobody changes, or is copied for whoever may;
    without `answers` only refusals are kept. The files of all that is kept have `most` bytes together. What is kept is
    told apart by path and by whatever else the reader was given. With `goes_on` the reader is also given `before=`, its
    answer for the version before, or None.

    A file that was changed a moment ago is read again: its dates may not show the next change. A ConfigError is not
    kept: what a run needs beside its files may come later. Raises Unusable for what a damaged file ends in, and
    OSError.
    """

    def decorate(read: Callable[Concatenate[Path, P], T]) -> Callable[Concatenate[Path, P], T]:
        memory: Memory[Hashable, _Read] = Memory(most)

        @functools.wraps(read)
        def reader(path: Path, *given: P.args, **named: P.kwargs) -> T:
            key = (str(path), given, *named.items())
            now = time.time_ns()
            found = os.stat(path)
            version = version_of(found)
            kept = memory.get(key)
            if kept is not None and kept.version == version and kept.settled:
                if kept.refusal is not None:
                    kind, number, words = kept.refusal
                    raise kind(number, words, str(path))
                if kept.why:
                    raise Unusable(kept.why)
                answer: T = kept.answer
                return answer
            settled = is_settled(version, now)
            if goes_on:
                named["before"] = None if kept is None else kept.answer
            try:
                answer = read(path, *given, **named)
            except (ConfigError, MemoryError):
                memory.forget(key)
                raise
            except LASTING as error:
                refusal = (type(error), error.errno, error.strerror)
                memory.put(key, _Read(version, settled, refusal=refusal), AN_ENTRY)
                raise
            except OSError:
                memory.forget(key)
                raise
            except DAMAGED as error:
                memory.put(key, _Read(version, settled, why=reason(error)), AN_ENTRY)
                raise Unusable(reason(error)) from error
            if answers:
                memory.put(key, _Read(version, settled, answer), AN_ENTRY + found.st_size)
            return answer

        reader.memory = memory  # type: ignore[attr-defined]
        return reader

    return decorate


def copied(value: T) -> T:
    """The same records and lists made anew, down to what cannot be changed."""
    if isinstance(value, dict):
        return {name: copied(each) for name, each in value.items()}  # type: ignore[return-value]
    if isinstance(value, list):
        return [copied(each) for each in value]  # type: ignore[return-value]
    return value
