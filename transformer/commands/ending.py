"""How a command line ends: bad input is one line on stderr and an exit code, never a traceback."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError


def exit_code(app: App, arguments: Sequence[str] | None) -> int:
    """Run a command line, of this process where no `arguments` are given; the exit code.

    That of the command, 2 for bad input, 130 when interrupted.
    """
    try:
        return app(arguments, exit_on_error=False, print_error=False, result_action="return_value") or 0
    except (CycloptsError, ValueError, OSError) as error:
        # ConfigError, RunError and CheckpointError are ValueErrors whose message is one sentence.
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
