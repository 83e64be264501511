"""Is every file of a run what it should be? Nothing in it is believed.

A run of one's own is written by this program and is what it says. One that was packed elsewhere may be damaged, of
another version, or made to do harm: here its files are read the way they will be used, once, before it is let in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from transformer.config import RunConfig
from transformer.foundation.checks import reason
from transformer.foundation.foreign import DAMAGED, shortened
from transformer.foundation.regular_files import require_file
from transformer.text import shelf
from transformer.text.corpus import Excerpt
from transformer.text.shelf import TEXT_FILE
from transformer.training.library import LibraryError
from transformer.training.runs import Run, RunError, State, stored_control, stored_state
from transformer.training.stored import arrays, records, weights
from transformer.training.stored.checks import expect


def inspect(run: Run) -> State:
    """Read a whole run folder, and return its state as it is stored. Raises LibraryError with what is wrong."""
    _read(run, TEXT_FILE, Excerpt.load)
    config = _read(run, "run.json", _config)
    for fault in _faults(run, config):
        raise LibraryError(fault)
    found = run.snapshots()
    if not found:
        raise LibraryError("the run has no weights: there is no snapshot")
    drawn_anew = [step for step, path in found.items() if weights.shapes(path, config) is None]
    for step in {*drawn_anew, max(found)}:
        path = run.snapshot(step)
        _read(run, f"snapshots/{path.name}", lambda path: run.network(int(path.stem.removeprefix("step-"))))
    state: State = _read(run, "state.json", stored_state) or State("stopped", reason="it came without a state")
    return state


def faults(run: Run) -> list[str]:
    """What of a run cannot be used, a sentence each; nothing of one whose config cannot be read, which says so itself.

    Every small file is read, and every array; of the weights what they say of themselves. No PyTorch is needed.
    """
    try:
        return list(_faults(run, run.config))
    except RunError:
        return []


def _faults(run: Run, config: RunConfig) -> Iterator[str]:
    task = config.build_task()
    readers: dict[str, Callable[[Path], Any]] = {
        "state.json": stored_state,
        "control.json": stored_control,
        "lock": require_file,
        "metrics.jsonl": lambda path: _metrics(path, config),
        "evaluation.json": lambda path: records.evaluation(path, task),
        "example.npz": lambda path: arrays.example(path, config),
        "film.npz": lambda path: arrays.film(path, config),
        TEXT_FILE: Excerpt.load,
        "resume.safetensors": lambda path: weights.header(path, "attention-lab-training/1"),
    }
    try:
        records.details(run.card)
    except ValueError as error:
        yield f"a detail in its run.json cannot be used: {error}"
    for name, look in readers.items():
        try:
            _read(run, name, look)
        except LibraryError as error:
            yield str(error)
    yield from _of_snapshots(run, config)


def _of_snapshots(run: Run, config: RunConfig) -> Iterator[str]:
    """All weights have one shape, which is that of the config, and say so themselves."""
    found: list[weights.Shapes] = []
    for path in sorted((run.folder / "snapshots").glob("step-*.safetensors")):
        try:
            require_file(path)
        except OSError as error:
            yield f"its snapshots/{shortened(path.name)} cannot be used: {reason(error)}"
    for step, path in run.snapshots().items():
        try:
            shapes = _read(run, f"snapshots/{path.name}", lambda path: weights.shapes(path, config))
        except LibraryError as error:
            yield str(error)
            return
        if shapes is not None or step:
            found.append(shapes or {})
    if any(shapes != found[0] for shapes in found):
        yield "its snapshots are of different models"


def _read(run: Run, name: str, look: Callable[[Path], Any]) -> Any:
    """Look at a file, if it is there. Raises LibraryError when it does not hold what it should."""
    path = run.folder / name
    if not path.exists() and name != "run.json":
        return None
    try:
        return look(path)
    except FileNotFoundError:
        raise LibraryError(f"this is no run: it has no {name}") from None
    except (*DAMAGED, OSError) as error:
        raise LibraryError(f"its {name} cannot be used: {reason(error)}") from None


def _config(path: Path) -> RunConfig:
    card = records.card(path)
    records.details(card)
    shelf.bring(path.parent, card["config"])
    return records.config(path)


def _metrics(path: Path, config: RunConfig) -> None:
    wrong = records.metrics(path, config.build_task()).faults
    expect(not wrong, "; ".join(wrong[:1]))
