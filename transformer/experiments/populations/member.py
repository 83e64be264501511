"""One member of a population, in its run folder: what is written while it trains, and the row that it ends in."""

from __future__ import annotations

import contextlib
import json
import time

import torch

from transformer.analysis.film.film import until
from transformer.analysis.film.take import Camera
from transformer.analysis.heads.measure import measure_heads
from transformer.checkpoints import save, save_initial
from transformer.experiments.populations.table import ROW, Row
from transformer.foundation.atomic_files import write_whole
from transformer.foundation.regular_files import open_file
from transformer.model import build
from transformer.training import resume
from transformer.training.loop import Step, Training
from transformer.training.recording import details, examine, how_it_ended, line_of, snapshot_steps
from transformer.training.runs import Run

LOOKED_AT = 32
"""Sequences behind each frame of a member's film: a population has many films."""
MEASURED = 1024
"""Sequences on which its last weights are measured."""
BEAT = 2.0
"""Seconds between two signs of life."""


class Recorder:
    """Writes a member's training into its run folder: metrics, film, the state to go on from, and its end.

    The folder is an ordinary run's, without the weights between the first step and the last. Make it where the folder's
    lock is held. What was left there is gone on with.
    """

    def __init__(self, run: Run, device: torch.device) -> None:
        self.run, self.config, self.device = run, run.config, device
        self.training = Training(build(self.config).to(device), self.config)
        left, film, anew = run.folder / "resume.safetensors", None, ""
        if left.is_file():
            anew = resume.restore(left, self.training)
            begun = run.film
            film = None if begun is None else until(begun, self.training.step)  # it is written first, and may be ahead
        self.kept = set(snapshot_steps(self.config.training.max_steps))
        self.camera = Camera(self.training.task, sequences=LOOKED_AT, begun=film)
        self.last_beat = 0.0
        run.cut_metrics(self.training.step)
        self.metrics = open_file(run.folder / "metrics.jsonl", "a", buffering=1)
        if not self.training.step:
            save_initial(run.folder / "snapshots" / "step-000000.safetensors", self.config)
            self.camera.look(0, self.training.model)
        run.add_details(**details(device), **({"noise": anew} if anew else {}))
        self._beat("running", force=True)

    @property
    def films(self) -> bool:
        """Is a frame taken of the step that was taken last?"""
        return self.training.step in self.kept

    @property
    def steps_to_frame(self) -> int:
        """Steps until a frame is taken, or none is any more: until the last."""
        step = self.training.step
        return min((kept for kept in self.kept if kept > step), default=self.config.training.max_steps) - step

    def add(self, entry: Step) -> None:
        """Write a step down."""
        self.metrics.write(json.dumps(line_of(entry)) + "\n")
        self._beat("running")

    def look(self) -> None:
        """Take a frame. The training's model has its present weights."""
        self.camera.look(self.training.step, self.training.model)

    def keep(self) -> None:
        """Write down all that the next step depends on: a kill loses the steps after this."""
        self.run.set_film(self.camera.film().pack())
        resume.save(self.run.folder / "resume.safetensors", self.training)

    def end(self) -> Row:
        """Keep the last weights, measure them, and say how it ended. The training's model has its last weights."""
        training, run = self.training, self.run
        model = training.model.eval()
        self.look()
        reason = how_it_ended(training)
        run.set_state("measuring", training.step, reason)
        save(run.folder / "snapshots" / f"step-{training.step:06d}.safetensors", model, self.config)
        examine(run, model, MEASURED)
        run.set_film(self.camera.film(run.digest()).pack())
        kinds = measure_heads(model, training.task)
        row = Row.measured(run, solved=training.solved, kinds={str(head): kinds.name(head) for head in kinds.heads})
        return self._ended("finished", reason, row)

    def fail(self, reason: str) -> Row:
        """Say why it cannot go on."""
        return self._ended("failed", reason, Row.failed(self.run.name, self.training.step, reason))

    def leave(self) -> None:
        """Stop here, for whoever takes it up again; the last word, if the disk still takes one."""
        with contextlib.suppress(OSError):
            self.run.set_state("stopped", self.training.step, f"interrupted at step {self.training.step}")
        self.metrics.close()

    def _ended(self, status: str, reason: str, row: Row) -> Row:
        self.metrics.close()
        write_whole(self.run.folder / ROW, row.packed())
        (self.run.folder / "resume.safetensors").unlink(missing_ok=True)
        self.run.set_state(status, self.training.step, reason)
        return row

    def _beat(self, status: str, force: bool = False) -> None:
        if force or time.monotonic() - self.last_beat >= BEAT:
            self.run.set_state(status, self.training.step)
            self.last_beat = time.monotonic()
