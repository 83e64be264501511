"""A run is a folder, readable at every instant by anyone. No PyTorch here.

run.json              config, versions, device, when it was made
metrics.jsonl         a line a step, appended
snapshots/            step-000100.safetensors, each written whole or not at all; of a shipped run, step 0 is its config
                      alone, whose seed draws the weights anew
resume.safetensors    the newest state from which training can go on, to the bit
state.json            queued, running, paused, measuring, finished, stopped or failed; the step, the reason, a heartbeat
control.json          what is asked of whoever trains it: stop, pause, a pace
text.npz              of a run that reads a text: its vocabulary, and an excerpt that was held out
evaluation.json       accuracy by position of the final model, measured once, with its verdict
example.npz           one question answered by it, and every head's mean: the first look, without PyTorch
film.npz              how the heads came to be, made once the run has ended
lock                  held by the process that is at work here
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from platformdirs import user_data_path

from transformer.config import RunConfig
from transformer.foundation.atomic_files import sync_folder, write_whole
from transformer.foundation.checks import UserError, reason
from transformer.foundation.foreign import DAMAGED, read_record, sha256, shortened
from transformer.foundation.versions import copied, read_once
from transformer.text import shelf
from transformer.text.shelf import TEXT_FILE
from transformer.training import lock
from transformer.training.stored import records
from transformer.training.stored.checks import LATEST, expect, number, text, whole
from transformer.training.stored.weights import OTHER

if TYPE_CHECKING:
    import torch

    from transformer.analysis.film.film import Film
    from transformer.analysis.findings import Example
    from transformer.network import Network

T = TypeVar("T")
LIVE = ("queued", "running", "paused", "measuring")
STATUSES = (*LIVE, "finished", "stopped", "failed", "lost")
SILENT_AFTER = 30.0
"""Seconds without a heartbeat after which a training elsewhere, or one that nobody has begun, is taken for dead."""
MOST_STATE = 2**16
"""Bytes of state.json and of control.json."""
SNAPSHOT = re.compile(r"step-(\d{1,9})\.safetensors", re.ASCII)


def _default_root() -> Path:
    """checkpoints/ of the repository that this file is in. An installed package is in none: it takes checkpoints/ of
    the present folder where there are runs in it, and else a folder among the user's data."""
    own, here = Path(__file__).resolve().parents[2] / "checkpoints", Path("checkpoints")
    if own.is_dir():
        return own
    if any(here.glob("*/run.json")):
        return here.absolute()
    return user_data_path("attention-lab") / "checkpoints"


DEFAULT_ROOT = _default_root()
ROOT = Path(os.environ.get("ATTENTION_LAB_RUNS") or DEFAULT_ROOT)
"""Where runs are kept, for the command line and the dashboard alike."""
PACKAGED = Path(__file__).resolve().parents[1] / "shipped"
"""The runs that an installed package brings along, which are listed beside those in ROOT and only read. A repository
has none here: its shipped runs lie in checkpoints/."""


class RunError(UserError):
    """A folder that is not a readable run; the message is one sentence."""


@dataclass(frozen=True)
class State:
    """Where a run stands."""

    status: str
    """queued, running, paused, measuring (trained, and looking at the result), finished, stopped, failed, or lost
    (it was live, and its process is gone)."""
    step: int = 0
    reason: str = ""
    """One sentence: why it ended."""
    heartbeat: float = 0.0
    """Unix time of the last sign of life."""
    host: str = ""
    """The machine it is being trained on."""
    memory: int = 0
    """Most bytes that the training process has held: on the GPU if it trains there, else of main memory."""

    def __post_init__(self) -> None:
        """Raises ValueError: a file may hold anything."""
        expect(self.status in STATUSES, f"nobody knows the status {shortened(self.status)}")
        whole(self.step)
        whole(self.memory)
        text(self.reason)
        text(self.host)
        number(self.heartbeat, 0, LATEST)

    @property
    def live(self) -> bool:
        return self.status in LIVE


@dataclass(frozen=True)
class Control:
    """What is asked of a training; whoever trains looks at it between steps."""

    stop: bool = False
    pause_at: int | None = None
    """Pause once this many steps are taken; 0 pauses now."""
    pace: float | None = None
    """At most so many steps a second."""

    def __post_init__(self) -> None:
        """Raises ValueError: a file may hold anything."""
        expect(isinstance(self.stop, bool), f"{shortened(self.stop)} is neither to stop nor not")
        whole(0 if self.pause_at is None else self.pause_at)
        number(1.0 if self.pace is None else self.pace, 0, LATEST)


_changes = 0


def note_change() -> None:
    """Note that this process has changed a run: whoever shares a look at its folder (`listing.py`) looks anew."""
    global _changes
    _changes += 1


def changes() -> int:
    """A number that is another once this process has changed a run."""
    return _changes


@read_once()
def stored_state(path: Path) -> State:
    """state.json. Raises ValueError or TypeError where it is none, and OSError."""
    return State(**read_record(path, MOST_STATE))


@read_once()
def stored_control(path: Path) -> Control:
    """control.json. Raises ValueError or TypeError where it is none, and OSError."""
    return Control(**read_record(path, MOST_STATE))


@dataclass(frozen=True)
class Run:
    """A run folder, and what can be read from it.

    Every property looks at the disk anew and shows the truth of now; a file is read where it is another than before
    (`foundation/versions.py`). What a property returns is the caller's own.
    """

    folder: Path

    @classmethod
    def create(cls, folder: Path, config: RunConfig, **details: Any) -> Run:
        """Make the folder and say what is to be trained. Raises RunError if there is a run already."""
        if (folder / "run.json").exists():
            raise RunError(f"there is a run in {folder.name} already: choose another folder, or delete it first")
        run, new, task = cls(folder), not folder.exists(), config.task
        card = {"format": records.FORMAT, "config": config.to_dict(), "created": time.time(), **details}
        try:
            (folder / "snapshots").mkdir(parents=True, exist_ok=True)
            run.set_state("queued", 0)
            if task.text:
                shelf.excerpt(task.text, task.split, task.min_count).save(folder / TEXT_FILE)
            run._write("run.json", card)
            sync_folder(folder.parent)
        except OSError as error:
            if new:
                shutil.rmtree(folder, ignore_errors=True)
            raise RunError(f"the folder {folder.name} cannot be made: {reason(error)}") from None
        return run

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def packaged(self) -> bool:
        """Does it come with the installed package? Then it is only read."""
        return self.folder.parent == PACKAGED

    @property
    def card(self) -> dict[str, Any]:
        """run.json. Raises RunError when it is missing, damaged or of another version."""
        path = self.folder / "run.json"
        try:
            return records.card(path)
        except FileNotFoundError:
            raise RunError(f"{shortened(self.name)} is not a run: it has no run.json") from None
        except (*DAMAGED, OSError) as error:
            raise RunError(f"the run.json of {shortened(self.name)} cannot be used: {reason(error)}") from None

    @property
    def config(self) -> RunConfig:
        """What it is, and how it is trained. Raises RunError."""
        stored = self.card["config"]
        try:
            shelf.bring(self.folder, stored)
            return records.config(self.folder / "run.json")
        except (*DAMAGED, OSError) as error:
            raise RunError(f"the config of the run {shortened(self.name)} cannot be used: {reason(error)}") from None

    @property
    def created(self) -> float:
        """When it was made, in Unix time; 0 when its card does not say."""
        created = self.card.get("created")
        return float(created) if isinstance(created, int | float) and abs(created) < LATEST else 0.0

    @property
    def state(self) -> State:
        state = self._stored_state()
        while state.live and not self._attended(state):
            again = self._stored_state()
            if again == state:  # else its process ended between the two looks, and left its last word
                if state.status == "paused":
                    return state  # nobody waits any more, and nothing is lost: whoever resumes takes it up
                was = "it was still queued" if state.status == "queued" else f"stopped at step {state.step}"
                return replace(state, status="lost", reason=f"{was}: the process is gone")
            state = again
        return state

    def _stored_state(self) -> State:
        try:
            return stored_state(self.folder / "state.json")
        except FileNotFoundError:
            return State("lost", reason="the run has no state")
        except (*DAMAGED, OSError):
            return State("lost", reason="the run's state cannot be read")

    def _attended(self, state: State) -> bool:
        """Is a process at work on it, or about to be?"""
        held = lock.held(self.folder) if state.host == socket.gethostname() else None
        if state.status != "queued" and held is not None:
            return held
        return bool(held) or abs(time.time() - state.heartbeat) <= SILENT_AFTER  # a clock may have been set back

    @property
    def waiting(self) -> bool:
        """Is a process of this machine holding the run, ready to go on with it at once?"""
        return bool(lock.held(self.folder))

    @property
    def under_way(self) -> bool:
        """Is it queued, trained, measured, or paused in a process? A paused run that nobody holds is only a folder."""
        state = self.state
        return state.live and (state.status != "paused" or self.waiting)

    @property
    def resumable(self) -> bool:
        """Can its training go on from where it was left? Weights without the state behind them would be lost."""
        status = self.state.status
        if status == "paused":
            return True
        whole = (self.folder / "resume.safetensors").is_file() or not max(self.snapshots(), default=0)
        return whole and status in ("stopped", "failed", "lost")

    @property
    def evaluation(self) -> dict[str, Any] | None:
        """What was measured when it ended; None where nothing was, or where the file cannot be used."""
        return self._stored("evaluation.json", lambda path: records.evaluation(path, self.config.build_task()))

    @property
    def example(self) -> Example | None:
        """The first look at it; None where there is none that can be used."""
        from transformer.training.stored import arrays  # NumPy, which a mere list of runs does without

        return self._stored("example.npz", lambda path: arrays.example(path, self.config))

    @property
    def film(self) -> Film | None:
        """How its heads came to be; None where there is no film that can be used."""
        from transformer.training.stored import arrays

        return self._stored("film.npz", lambda path: arrays.film(path, self.config))

    def metrics(self) -> list[dict[str, Any]]:
        """Every line of metrics.jsonl that is whole and can be used."""
        return copied(list(self.stored_metrics().lines))

    def stored_metrics(self) -> records.Metrics:
        """The same as it is kept between two looks, to be read only; of nothing where the file cannot be used."""
        found = self._stored("metrics.jsonl", lambda path: records.metrics(path, self.config.build_task()))
        return records.Metrics() if found is None else found

    def last(self) -> dict[str, Any]:
        """The last of these lines without its accuracies; nothing where there is none."""
        found = self._stored("metrics.jsonl", lambda path: records.last(path, self.config.build_task()))
        return copied(found or {})

    def snapshots(self) -> dict[int, Path]:
        """The stored steps, ascending, and their files."""
        files = (self.folder / "snapshots").glob("step-*.safetensors")
        steps = {int(m[1]): file for file in files if (m := SNAPSHOT.fullmatch(file.name)) and file.is_file()}
        return dict(sorted(steps.items()))

    def snapshot(self, step: int | None = None) -> Path:
        """The file of one step, or of the last. Raises RunError when there is none."""
        snapshots = self.snapshots()
        if not snapshots:
            _ = self.card  # what is no run has no weights either
            raise RunError(f"the run {self.name} has no weights yet")
        step = max(snapshots) if step is None else step
        if step not in snapshots:
            raise RunError(f"the run {self.name} has no step {step}; it has {', '.join(map(str, snapshots))}")
        return snapshots[step]

    def network(self, step: int | None = None, device: torch.device | str = "cpu") -> Network:
        """The model at one of its kept steps, or at the last, in evaluation mode.

        Raises RunError when there is no such step, or when its file is of another model than the run; CheckpointError
        when it is no whole checkpoint.
        """
        from transformer.checkpoints import load  # PyTorch

        path = self.snapshot(step)
        found, config = load(path, device)
        if config != self.config:
            raise RunError(f"{path.name} cannot be used in the run {shortened(self.name)}: {OTHER}")
        return found

    def cut_metrics(self, step: int) -> None:
        """Leave out what was measured after a step, and a line that was never finished. Raises RunError where the file
        cannot be read, for nothing would be left of it."""
        path = self.folder / "metrics.jsonl"
        try:
            found = records.metrics(path, self.config.build_task()).lines if path.exists() else ()
        except (*DAMAGED, OSError) as error:
            raise RunError(f"the metrics.jsonl of {shortened(self.name)} cannot be used: {reason(error)}") from None
        kept = [json.dumps(line) + "\n" for line in found if line["step"] <= step]
        write_whole(self.folder / "metrics.jsonl", "".join(kept).encode())

    def set_state(self, status: str, step: int, reason: str = "", memory: int = 0) -> None:
        host = socket.gethostname() if status in LIVE else ""
        state = State(status, step, reason, time.time(), host, memory)
        self._write("state.json", asdict(state))

    def add_details(self, **details: Any) -> None:
        """Say more on the run's card."""
        self._write("run.json", self.card | details)

    def set_evaluation(self, evaluation: dict[str, Any]) -> None:
        self._write("evaluation.json", evaluation)

    def digest(self, step: int | None = None) -> str:
        """The first 16 hex digits of `sha256`: whose numbers these are."""
        return self.sha256(step)[:16]

    def sha256(self, step: int | None = None) -> str:
        """SHA-256 of a snapshot's file, in hex, as `sha256sum` says it. Raises RunError when there is none."""
        return sha256(self.snapshot(step))

    def set_example(self, packed: bytes) -> None:
        write_whole(self.folder / "example.npz", packed)

    def set_film(self, packed: bytes) -> None:
        write_whole(self.folder / "film.npz", packed)

    @property
    def control(self) -> Control:
        return self._stored("control.json", stored_control) or Control()

    def ask(self, **wishes: Any) -> None:
        """Ask whoever trains it for something: `stop=True`, `pause_at=0`, `pace=5.0`; see Control."""
        self._write("control.json", asdict(replace(self.control, **wishes)))

    def request_stop(self) -> None:
        """Ask the training to stop after the step it is in."""
        self.ask(stop=True)

    def _stored(self, name: str, read: Callable[[Path], T]) -> T | None:
        """What a file holds; None where it is missing or cannot be used (exchange/inspection.py says why)."""
        try:
            return read(self.folder / name)
        except (*DAMAGED, OSError):
            return None

    def _write(self, name: str, values: dict[str, Any]) -> None:
        write_whole(self.folder / name, json.dumps(values, indent=1).encode())
        note_change()


def located(run: str) -> Path:
    """A run's folder or file, by its path or its name below ROOT. Raises RunError when neither is there."""
    found = next((path for path in (Path(run), folder_called(run, ROOT)) if path.exists()), None)
    if found is None:
        raise RunError(f"there is no run {shortened(run)}, neither at that path nor below {ROOT.name}/")
    return found


def folder_called(name: str, root: Path) -> Path:
    """The folder of the run of a name, below `root` or, where only the package has one, there; it need not exist."""
    own, packaged = root / name, PACKAGED / name
    return packaged if packaged.exists() and not own.exists() else own


def new_folder(root: Path, config: RunConfig, ending: str = "") -> Path:
    """A fresh folder's name that says what is in it, and ends as asked: reverse-8-2x4-learned-2."""
    model, task = config.model, config.task
    shape = f"gru-{model.attention}" if model.recurrent else f"{model.n_layers}x{model.n_heads}-{model.positions}"
    named = task.text.rpartition("-")[0] + ("" if task.split == "words" else "-characters")
    stem = f"{named if task.text else task.task}-{task.length}-{shape}"
    taken = {path.name for path in root.glob(f"{stem}*")} if root.is_dir() else set()
    return root / next(name for i in range(1, 1_000_000) if (name := f"{stem}-{i}{ending}") not in taken)
