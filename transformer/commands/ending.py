"""How a command line ends: bad input is one line on stderr and an exit code, never a traceback."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from transformer.config import ConfigError
from transformer.foundation.foreign import REPEATED, shortened


def exit_code(app: App, arguments: Sequence[str] | None) -> int:
    """Run a command line, of this process where no `arguments` are given; the exit code.

    That of the command, 2 for bad input, 130 when interrupted.
    """
    typed = sys.argv[1:] if arguments is None else arguments
    try:
        for each in typed:
            _require_utf8(each)
        return app(typed, exit_on_error=False, print_error=False, result_action="return_value") or 0
    except (CycloptsError, ValueError, OSError) as error:
        # ConfigError, RunError and CheckpointError are ValueErrors whose message is one sentence.
        message = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        print(f"error: {on_one_line(message, typed)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _require_utf8(argument: str) -> None:
    """Raises ConfigError for an argument that could not be printed, nor written into a run's files."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"the argument {shortened(argument)} is no UTF-8 text") from None


def on_one_line(message: str, typed: Sequence[str]) -> str:
    """An error's message on one line, which repeats at most REPEATED characters of anything that was typed."""
    for each in sorted({part for argument in typed for part in (argument, argument.partition("=")[2])}, key=len):
        if len(each) > REPEATED:
            for written in (each, repr(each)[1:-1]):
                message = message.replace(written, shortened(each))
    return " ".join(message.split())
