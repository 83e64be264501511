"""The dashboard's own command line: `python -m dashboard lecture check FILE…`.

Exit code 1 where a lecture says what is not true, 2 where a file cannot be read as one.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from cyclopts import App

from transformer import __version__
from transformer.commands.ending import exit_code

app = App(
    name="python -m dashboard",
    help="What the dashboard does without a browser; the dashboard itself: `streamlit run dashboard/app.py`.",
    version=__version__,
)
lecture = App(name="lecture", help="Lectures: Markdown files of steps, each a view of the dashboard with words.")
app.command(lecture)


@lecture.command
def check(file: Path, *more: Path) -> int:
    """Prove that every step's view opens as written, and that every number and claim in its words is true.

    Parameters
    ----------
    file
        A lecture.
    more
        Others.
    """
    from dashboard.lectures.check import mistakes
    from dashboard.lectures.lecture import Mistake, load

    logging.disable(logging.WARNING)  # that a page is opened without a browser is no fault here
    worst = 0
    for path in (file, *more):
        try:
            found = load(path)
        except OSError as error:
            print(f"{path}: {error.strerror}.", file=sys.stderr)
            worst = 2
            continue
        except Mistake as mistake:
            print(f"{path}, {mistake}.", file=sys.stderr)
            worst = 2
            continue
        false = list(mistakes(found))
        for each in false:
            print(f"{path}, {each}.", file=sys.stderr)
        worst = max(worst, 1 if false else 0)
        numbers, claims = (
            sum(len(step.expressions) for step in found.steps),
            sum(len(step.claims) for step in found.steps),
        )
        if not false:
            print(f"{path}: {len(found.steps)} steps, {numbers} numbers and {claims} claims hold.")
    return worst


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code: 0, 1 where a lecture is not true, 2 for bad input, 130 when interrupted."""
    return exit_code(app, arguments)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # what a page began behind itself is not waited for: PyTorch aborts where it is cut off
