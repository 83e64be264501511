"""The last lines that a process of ours has written, and one sentence on how it ended: nothing of it is lost unread."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from typing import IO

from transformer.foundation.foreign import shortened

LINES, LONGEST = 30, 300
"""Lines that are kept of a process, and characters of each."""
REPEATED = 160
"""Characters of one that a sentence repeats."""
RAISED = re.compile(r"(\w+\.)*\w*(Error|Exception|Interrupt|Exit)\b")
"""How the line begins in which Python says what was raised; a library may add advice below it."""
LEFT = 1.0
"""Seconds in which what a dead process has written is read to its end; a child of its own may keep the pipe open."""


class LastWords:
    """What a process has written last, as much as says what went wrong."""

    def __init__(self, stream: IO[bytes] | None = None) -> None:
        """With a stream, which the process writes to, a thread reads it until the process has ended."""
        self._lines: deque[str] = deque(maxlen=LINES)
        self._reader: threading.Thread | None = None
        if stream is not None:
            self._reader = threading.Thread(target=self._read, args=(stream,), name="last words", daemon=True)
            self._reader.start()

    def add(self, line: str) -> None:
        """Keep a line, if it says anything."""
        if line.strip():
            self._lines.append(shortened(line.rstrip(), LONGEST))

    @property
    def lines(self) -> Sequence[str]:
        """The lines that are kept, oldest first; of a process that has ended, all that came last."""
        if self._reader is not None:
            self._reader.join(LEFT)
        return list(self._lines)

    def of(self, code: int | None) -> str:
        """How a process ended that returned `code` (None: none could be made), in words to stand in a sentence."""
        lines = self.lines
        told = next((line for line in reversed(lines) if RAISED.match(line)), lines[-1] if lines else "")
        if told:
            return f"its last words were “{shortened(told.strip(), REPEATED)}”"
        if code is not None and code < 0:
            return f"it was ended by {signal_name(-code)}"
        return "it wrote nothing" if code is None else f"it wrote nothing, and ended with exit code {code}"

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(4 * LONGEST):
                self.add(line.decode(errors="replace"))


def listen(process: subprocess.Popen[bytes]) -> LastWords:
    """Keep the last words that a process writes to its stderr, which has to be a pipe."""
    return LastWords(process.stderr)


def signal_name(number: int) -> str:
    """What a signal is called: "signal SIGKILL"."""
    return f"signal {signal.Signals(number).name if number in set(signal.Signals) else number}"
