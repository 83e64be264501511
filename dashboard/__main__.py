"""The command `attention-lab`, also `python -m dashboard`: starts the dashboard, and does what needs no browser.

Beside its own commands it has those of the library, `python -m transformer`. Bad input is one line on stderr and exit
code 2; a lecture that says what is not true, and a training that fails, are exit code 1.
"""

from __future__ import annotations

import importlib.machinery
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

from cyclopts import App, Parameter

from transformer import ConfigError, __version__
from transformer.__main__ import app as library
from transformer.__main__ import example
from transformer.commands.ending import exit_code
from transformer.foundation.atomic_files import write_whole
from transformer.foundation.foreign import shortened
from transformer.foundation.program import program
from transformer.training.exchange import archive
from transformer.training.runs import Run, located

if TYPE_CHECKING:
    from dashboard.lectures.lecture import Lecture
    from dashboard.lectures.reading import Mistake

Kind = TypeVar("Kind")
app = App(
    name=program(),
    help=f"A transformer to look into: `{program()} run` starts the dashboard.",
    version=__version__,
    config=library.config,
    suppress_keyboard_interrupt=False,
)
app.update(library)
lecture = App(name="lecture", help="Lectures: Markdown files of steps, each a view of the dashboard with words.")
app.command(lecture)
exercise = App(name="exercise", help="Exercises: Markdown files, each a view to begin with and goals to be measured.")
app.command(exercise)


@app.command(help_epilogue=example("run --server.port 8600"))
def run(*options: Annotated[str, Parameter(allow_leading_hyphen=True)], module: str | None = None) -> int:
    """Start the dashboard, and open it in a browser. Ctrl-C stops it.

    Parameters
    ----------
    options
        Options of Streamlit; `streamlit run --help` lists them.
    module
        The function that builds a model of your own: my_model:build is `build` in `my_model.py` here. Its code is run.
    """
    for before, token in pairwise(["", *options]):
        if not token.startswith("-") and ("=" in before or not before.startswith("-")):
            raise ConfigError(f"run takes options of Streamlit only, as in --server.port 8600, not {shortened(token)}")
    if module is not None:
        from dashboard.models.imported import MODULE

        os.environ[MODULE] = _function(module)

    from dashboard.server.streamlit_private import serve

    serve(Path(__file__).with_name("app.py"), options)
    return 0


def _function(named: str) -> str:
    """The name of a function of a module, once both look right. Raises ConfigError. Nothing is run."""
    found = re.fullmatch(r"([^\W\d]\w*)((?:\.[^\W\d]\w*)*):([^\W\d]\w*)", named)
    if found is None:
        raise ConfigError(f"--module takes MODULE:FUNCTION, as in my_model:build, not {shortened(named)}")
    if importlib.machinery.PathFinder.find_spec(found[1], [os.getcwd(), *sys.path]) is None:
        raise ConfigError(
            f"there is no module {shortened(found[1])}, neither in this folder nor among what is installed"
        )
    return named


@app.command
def export(run: str, *, out: Path | None = None) -> int:
    """Write a run as one file, which *Runs and races* takes on another machine.

    Parameters
    ----------
    run
        A run folder, or the name of one in checkpoints/.
    out
        The file; RUN.attention-run.zip here, if nothing is said.
    """
    found = Run(located(run))
    path = out or Path(f"{found.folder.resolve().name}{archive.SUFFIX}")
    packed = archive.pack(found)
    write_whole(path, packed)
    print(f"{path}: {len(packed) / 1e6:.1f} MB")
    return 0


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
    from dashboard.lectures.lecture import load

    def held(found: Lecture) -> str:
        numbers = sum(len(step.expressions) for step in found.steps)
        claims = sum(len(step.claims) for step in found.steps)
        questions = sum(step.question is not None for step in found.steps)
        return f"{len(found.steps)} steps, {numbers} numbers, {claims} claims and {questions} questions hold"

    return _proved((file, *more), load, mistakes, held)


@exercise.command(name="check")
def check_exercise(file: Path, *more: Path) -> int:
    """Prove that an exercise opens as written, that its goals name what a view has, and that it is not solved yet.

    Parameters
    ----------
    file
        An exercise.
    more
        Others.
    """
    from dashboard.lectures.check import faults
    from dashboard.lectures.exercises.exercise import load

    return _proved(
        (file, *more), load, faults, lambda found: f"it opens; goals that can be measured: {len(found.goals)}"
    )


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Have no warning logged meanwhile: that a page is opened without a browser is no fault here."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


@_without_warnings()
def _proved(
    paths: Sequence[Path],
    load: Callable[[Path], Kind],
    mistakes: Callable[[Kind], Iterable[Mistake]],
    held: Callable[[Kind], str],
) -> int:
    """Say of each file what does not hold, or that all does. 0: all do; 1: one does not; 2: one cannot be read."""
    from dashboard.lectures.reading import Mistake

    worst = 0
    for path in paths:
        try:
            found = load(path)
        except OSError as error:
            print(f"{shortened(str(path))}: {error.strerror}.", file=sys.stderr)
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
        if not false:
            print(f"{path}: {held(found)}.")
    return worst


@app.command
def hand_out(lecture: str, *, out: Path | None = None, address: str | None = None, notes: bool = False) -> int:
    """Write a lecture as one HTML page that opens without a network. A browser without a window does the clicking.

    It takes about half a minute.

    Parameters
    ----------
    lecture
        Its name: attention, masks, order, bottleneck, shakespeare, or one of your own.
    out
        The file; LECTURE.html here, if nothing is said.
    address
        The server that the links in it lead back to; http://localhost:8501, if nothing is said.
    notes
        Write the presenter's notes into it, too.
    """
    from dashboard.lectures.hand_out import HERE, write

    path = out or Path(f"{lecture}.html")
    size = write(lecture, path, HERE if address is None else address, notes=notes)
    print(f"{path}: {size / 1e6:.1f} MB")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code: 0, 1 where a lecture is not true, 2 for bad input, 130 when interrupted.

    `--module my_model:build` alone means `run --module my_model:build`.
    """
    words = sys.argv[1:] if arguments is None else arguments
    return exit_code(app, ["run", *words] if words and words[0].partition("=")[0] == "--module" else words)


def command() -> NoReturn:
    """The command line as a program: its end is that of the process."""
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # what a page began behind itself is not waited for: PyTorch aborts where it is cut off


if __name__ == "__main__":
    command()
