"""The dashboard's own command line: `lecture check FILE…` and `hand-out LECTURE`, after `python -m dashboard`.

Exit code 1 where a lecture says what is not true, 2 where a file cannot be read as one.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from cyclopts import App

from dashboard.lectures.hand_out import HERE
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
        numbers = sum(len(step.expressions) for step in found.steps)
        claims = sum(len(step.claims) for step in found.steps)
        questions = sum(step.question is not None for step in found.steps)
        if not false:
            print(
                f"{path}: {len(found.steps)} steps, {numbers} numbers, {claims} claims and {questions} questions hold."
            )
    return worst


@app.command
def hand_out(lecture: str, *, out: Path | None = None, address: str = HERE) -> int:
    """Write a lecture as one HTML page that opens without a network. A browser without a window does the clicking.

    It takes about half a minute.

    Parameters
    ----------
    lecture
        Its name: attention, masks, order, bottleneck, shakespeare, or one of your own.
    out
        The file; LECTURE.html here, if nothing is said.
    address
        The server that the links in it lead back to.
    """
    from dashboard.lectures.hand_out import write

    path = out or Path(f"{lecture}.html")
    size = write(lecture, path, address)
    print(f"{path}: {size / 1e6:.1f} MB")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code: 0, 1 where a lecture is not true, 2 for bad input, 130 when interrupted."""
    return exit_code(app, arguments)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # what a page began behind itself is not waited for: PyTorch aborts where it is cut off
