"""A run is a folder, readable at every instant by anyone. No PyTorch here: listing runs costs nothing.

run.json              config, versions, device, when it was made
metrics.jsonl         a line a step, appended
snapshots/            step-000100.safetensors, each written whole or not at all
state.json            queued, running, finished, stopped or failed; the step, the reason, a heartbeat
evaluation.json       accuracy by position of the final model, measured once, with its verdict
example.npz           one question answered by it, and every head's mean: the first look, without PyTorch
stop                  present when somebody asked the training to stop
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transformer.config import ConfigError, RunConfig

FORMAT = "attention-lab-run/1"
SILENT_AFTER = {"queued": 120.0, "running": 15.0}
"""Seconds without a sign of life after which a training is taken for dead; a queued one may still be importing."""
DEFAULT_ROOT = Path(__file__).resolve().parents[2] / "checkpoints"


class RunError(ValueError):
    """A folder that is not a readable run; the message is one sentence."""


@dataclass(frozen=True)
class State:
    """Where a run stands."""

    status: str
    """queued, running, finished, stopped, failed, or lost (it was running, and its process is gone)."""
    step: int = 0
    reason: str = ""
    """One sentence: why it ended."""
    heartbeat: float = 0.0
    """Unix time of the last sign of life."""

    @property
    def live(self) -> bool:
        return self.status in ("queued", "running")


@dataclass(frozen=True)
class Run:
    """A run folder, and what can be read from it. Every property reads the disk anew: it shows the truth of now."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, config: RunConfig, **details: Any) -> Run:
        """Make the folder and say what is to be trained. Raises RunError if there is a run already."""
        if (folder / "run.json").exists():
            raise RunError(f"there is a run in {folder} already: choose another folder, or delete it first")
        try:
            (folder / "snapshots").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{folder} cannot be made: {error.strerror or error}") from None
        run = cls(folder)
        card = {"format": FORMAT, "config": config.to_dict(), "created": time.time(), **details}
        run._write("state.json", asdict(State("queued", heartbeat=time.time())))
        run._write("run.json", card)
        return run

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def card(self) -> dict[str, Any]:
        """run.json. Raises RunError when it is missing or of another version."""
        card = self._read("run.json")
        if card is None:
            raise RunError(f"{self.folder} is not a run: it has no readable run.json")
        if card.get("format") != FORMAT:
            raise RunError(f"the run in {self.folder} is of another version ({card.get('format')})")
        return card

    @property
    def config(self) -> RunConfig:
        try:
            return RunConfig.from_dict(self.card["config"])
        except (KeyError, ConfigError) as error:
            raise RunError(f"the config of the run {self.name} cannot be used: {error}") from None

    @property
    def created(self) -> float:
        """When it was made, in Unix time; 0 when its card does not say."""
        created = self.card.get("created")
        return float(created) if isinstance(created, int | float) else 0.0

    @property
    def state(self) -> State:
        values = self._read("state.json")
        try:
            state = State(**values) if values else State("lost", reason="the run has no state")
            silent = time.time() - state.heartbeat
        except TypeError:
            return State("lost", reason="the run's state cannot be read")
        if state.live and silent > SILENT_AFTER[state.status]:
            return State("lost", state.step, f"stopped at step {state.step}: the process is gone", state.heartbeat)
        return state

    @property
    def evaluation(self) -> dict[str, Any] | None:
        return self._read("evaluation.json")

    def metrics(self) -> list[dict[str, Any]]:
        """Every whole line of metrics.jsonl; a last line that is still being written is left out."""
        try:
            lines = (self.folder / "metrics.jsonl").read_text().split("\n")
        except OSError:
            return []
        found = []
        for line in lines[:-1]:
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        return found

    def snapshots(self) -> dict[int, Path]:
        """The stored steps, ascending, and their files."""
        files = (self.folder / "snapshots").glob("step-*.safetensors")
        steps = {int(m[1]): file for file in files if (m := re.fullmatch(r"step-(\d+)\.safetensors", file.name))}
        return dict(sorted(steps.items()))

    def snapshot(self, step: int | None = None) -> Path:
        """The file of one step, or of the last. Raises RunError when there is none."""
        snapshots = self.snapshots()
        if not snapshots:
            raise RunError(f"the run {self.name} has no weights yet")
        step = max(snapshots) if step is None else step
        if step not in snapshots:
            raise RunError(f"the run {self.name} has no step {step}; it has {', '.join(map(str, snapshots))}")
        return snapshots[step]

    def set_state(self, status: str, step: int, reason: str = "") -> None:
        self._write("state.json", asdict(State(status, step, reason, time.time())))

    def set_evaluation(self, evaluation: dict[str, Any]) -> None:
        self._write("evaluation.json", evaluation)

    def digest(self, step: int | None = None) -> str:
        """SHA-256 of a snapshot's file, its first 16 hex digits: whose numbers these are."""
        return hashlib.sha256(self.snapshot(step).read_bytes()).hexdigest()[:16]

    def set_example(self, packed: bytes) -> None:
        self._write_bytes("example.npz", packed)

    def request_stop(self) -> None:
        """Ask the training to stop after the step it is in; whoever trains it looks for this."""
        (self.folder / "stop").touch()

    @property
    def stop_requested(self) -> bool:
        return (self.folder / "stop").exists()

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            value = json.loads((self.folder / name).read_text())
        except (OSError, json.JSONDecodeError, UnicodeDecodeError):
            return None
        return value if isinstance(value, dict) else None

    def _write(self, name: str, values: dict[str, Any]) -> None:
        self._write_bytes(name, json.dumps(values, indent=1).encode())

    def _write_bytes(self, name: str, content: bytes) -> None:
        temporary = self.folder / f".{name}.{os.getpid()}.tmp"
        temporary.write_bytes(content)
        os.replace(temporary, self.folder / name)


def list_runs(root: Path = DEFAULT_ROOT) -> list[Run]:
    """The readable runs below a folder, oldest first."""
    return sorted(_readable(root), key=lambda run: (run.created, run.name))


def _readable(root: Path) -> Iterator[Run]:
    for card in root.glob("*/run.json"):
        run = Run(card.parent)
        try:
            _ = run.config
        except RunError:
            continue
        yield run


def new_folder(root: Path, config: RunConfig) -> Path:
    """A fresh folder's name that says what is in it: reverse-8-2x4-learned-2."""
    model, task = config.model, config.task
    stem = f"{task.task}-{task.length}-{model.n_layers}x{model.n_heads}-{model.positions}"
    taken = {path.name for path in root.glob(f"{stem}*")} if root.is_dir() else set()
    return root / next(name for i in range(1, 1_000_000) if (name := f"{stem}-{i}") not in taken)
