"""Training into a run folder: the loop's steps, written down as they happen."""

from __future__ import annotations

import contextlib
import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from transformer import checkpoints
from transformer.analysis.accuracy.by_position import accuracy_by_position
from transformer.analysis.accuracy.ceilings import ceiling
from transformer.analysis.accuracy.reading import reading
from transformer.analysis.accuracy.result import as_far, known_and_guessed, verdict
from transformer.analysis.film.take import film
from transformer.analysis.findings import Example
from transformer.analysis.heads.survey import survey
from transformer.analysis.sample import WHOLE, sample, say
from transformer.config import RunConfig
from transformer.foundation.foreign import shortened
from transformer.foundation.regular_files import NotAFile, open_file
from transformer.model import build
from transformer.network import Network
from transformer.tasks import Task
from transformer.text.perplexity import said
from transformer.training import lock, resume
from transformer.training.background_writer import BackgroundWriter
from transformer.training.device import Choice, choose_device, describe_device, memory
from transformer.training.events import Events
from transformer.training.loop import Step, Training, TrainingError
from transformer.training.queue.places import Places
from transformer.training.requests import Wishes
from transformer.training.runs import Run, RunError
from transformer.training.team import ALONE, Team

HEARTBEAT = 0.1
"""Seconds between two writings of the state while training."""
SAVE_EVERY, SHARE = 2.0, 50
"""Seconds after which a long training is written down between two snapshots; or so many times what that takes."""
EVALUATION_SEQUENCES = 4096
SNAPSHOTS = 40
FEW_SNAPSHOTS = (1, 16)
"""Of a model that reads a text, whose weights take megabytes: the first steps, and how many are kept in all."""


def snapshot_steps(most: int, dense: int = 16, kept: int = SNAPSHOTS) -> list[int]:
    """The steps whose weights are kept: about 40, each of the first 16 and then log-spaced, to the last."""
    dense = min(dense, most)
    steps = set(range(dense + 1))
    left = kept - len(steps)
    steps |= {round(dense * (most / dense) ** (i / left)) for i in range(1, left + 1)}
    return sorted(steps)


def details(device: torch.device) -> dict[str, Any]:
    """What else a run's card says: on what it was trained, and with which versions."""
    return {
        "device": describe_device(device),
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
    }


def evaluate(model: Network, config: RunConfig, sequences: int = EVALUATION_SEQUENCES) -> dict[str, Any]:
    """What `evaluation.json` and the command line say of a model: accuracy by position, and the verdict.

    Raises CheckpointError where its weights are no numbers: whatever it says then is no answer.
    """
    checkpoints.require_numbers(model)
    task = config.build_task()
    accuracy = accuracy_by_position(model, task, sequences=sequences, seed=config.training.seed + 1)
    low, high = accuracy.interval()
    read = {} if task.lawful else _read(model, task)
    return {
        "sequences": accuracy.sequences,
        "positions": list(accuracy.names),
        "accuracy_by_position": accuracy.mean.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "correct": accuracy.correct.tolist(),
        "chance": accuracy.chance,
        "ceiling": ceiling(config).greatest.tolist() if task.lawful else None,
        "first_half": accuracy.of(task.parts[0]) if task.parts[0] in accuracy.groups and len(task.parts) > 1 else None,
        "second_half": accuracy.of(task.part),
        "exact_match": accuracy.exact / accuracy.sequences,
        "verdict": verdict(accuracy, config) if task.lawful else f"held-out perplexity {said(read['perplexity'])}",
        **read,
        "weights": checkpoints.weights_hash(model),
    }


def _read(model: Network, task: Task) -> dict[str, Any]:
    """What reading all of a text's works that were held out costs; its excerpt, where the text is not here."""
    found = reading(model, task.held_out())
    return {"perplexity": found.perplexity, "nats": float(found.nats.mean()), "read": found.nats.size}


def record(
    run: Run,
    team: Team = ALONE,
    choice: Choice | None = None,
    config: RunConfig | None = None,
    places: Places | None = None,
) -> Iterator[Step]:
    """Train what the run's card says, into its folder, yielding each step; go on where it was left, if it was.

    The folder tells the truth at every instant: metrics are appended line by line, everything else is replaced whole,
    and an end of any kind leaves its reason. The last weights are always kept. Raises RunError when another process
    is training it, or when it has ended and nothing is left to go on from: the folder stays as it is then. Of a team
    only the leading process writes; the others may not see the folder, and need the `config`. Of the `places`, one of
    which has to be held, it gives its own away while it is paused. The config names the device where none was
    chosen.
    """
    try:
        with lock.hold(run.folder) if team.leads else contextlib.nullcontext():
            left = run.folder / "resume.safetensors"
            if team.leads and max(run.snapshots(), default=0) and not left.is_file():
                raise RunError(f"the run {run.name} has been trained, and nothing is left to go on from")
            yield from _Recording(run, team, choice, config or run.config, places).steps()
    except lock.Occupied as error:
        raise RunError(str(error)) from None
    except NotAFile as error:
        name = Path(error.filename).name
        raise RunError(f"the {name} of {shortened(run.name)} cannot be used: {error.strerror}") from None


class _Recording:
    """One process's work on a run, from taking it up to leaving it. Only the leading process of a team writes."""

    def __init__(self, run: Run, team: Team, choice: Choice | None, config: RunConfig, places: Places | None) -> None:
        self.run, self.team, self.config, self.choice = run, team, config, choice
        self.device = None if choice is None else choice.device
        self.step, self.pause = 0, SAVE_EVERY
        self.last_beat = self.last_save = 0.0
        self.wishes = Wishes(run, team, places=places)
        self.writer = BackgroundWriter()
        lawful = self.config.build_task().lawful
        self.kept = set(snapshot_steps(self.config.training.max_steps, *(() if lawful else FEW_SNAPSHOTS)))

    def steps(self) -> Iterator[Step]:
        try:
            training = self._begin()
            folder = self.run.folder if self.team.leads else None
            with self._metrics() as metrics, Events(folder, self.step, self.config) as events, self.writer:
                while not training.done and self._asked_to_go_on(training):
                    taken: list[Step] = []
                    for entry in training.take_steps(self._most(training.step)):
                        taken.append(entry)
                        self.step = entry.step
                        if self.team.leads:
                            metrics.write(json.dumps(line_of(entry)) + "\n")
                            events.add(entry)
                    if self.team.leads:
                        self._keep(training)
                        self._beat("running")
                    yield from self._until_left(taken, training)
            if self.team.leads:
                self._end(training)
        except (ValueError, OSError, RuntimeError) as error:
            self._leave("failed", sentence(error))
            raise
        except (KeyboardInterrupt, GeneratorExit):
            self._leave("stopped", f"interrupted at step {self.step}")
            raise

    def _until_left(self, taken: Sequence[Step], training: Training) -> Iterator[Step]:
        """Give away steps that are written down. Who asks for no more can go on after the last of them."""
        try:
            yield from taken
        except GeneratorExit:
            with contextlib.suppress(OSError):  # its folder may be gone, or the disk full
                if self.team.leads:
                    self.writer.wait()
                    resume.save(self.run.folder / "resume.safetensors", training)
            raise

    def _begin(self) -> Training:
        """The training, new or where it was left, and the folder in agreement with it."""
        self.choice = self.choice or choose_device(self.config.training.device, self.config)
        self.device = self.choice.device
        model = build(self.config).to(self.device)
        training = Training(model, self.config, self.team)
        left = self.run.folder / "resume.safetensors"
        anew = resume.restore(left, training) if self.team.agree(int(left.is_file())) else ""
        self.step = training.step
        self.stepping = training.stepping
        if self.team.leads:
            self.series = checkpoints.Series(model, self.config)
            (self.run.folder / "snapshots").mkdir(exist_ok=True)
            self.run.cut_metrics(self.step)
            for step, path in self.run.snapshots().items():
                if step > self.step:
                    path.unlink()
            for name in ("evaluation.json", "example.npz", "film.npz"):
                (self.run.folder / name).unlink(missing_ok=True)
            if self.step in self.kept and self.step not in self.run.snapshots():
                self.series.take(self._snapshot(self.step))()
            said = details(self.device) | {"why_there": self.choice.why, "stepping": training.stepping}
            said |= {"processes": self.team.size}
            said |= {"noise": anew} if anew else {}
            self.run.add_details(**said)
            self._beat("running", force=True)
        return training

    def _metrics(self) -> Any:
        if not self.team.leads:
            return contextlib.nullcontext()
        return open_file(self.run.folder / "metrics.jsonl", "a", buffering=1)

    def _most(self, step: int) -> int:
        """How many steps may be taken before something is due after the last of them."""
        due = min((kept for kept in self.kept if kept > step), default=self.config.training.max_steps) - step
        return min(due, self.wishes.allowed(step))

    def _asked_to_go_on(self, training: Training) -> bool:
        """Do what was asked for since the last step: wait, slow down, or end."""

        def paused() -> None:
            self.writer.wait()
            resume.save(self.run.folder / "resume.safetensors", training)
            self._beat("paused", force=True)

        goes_on = self.wishes.heed(training.step, paused, lambda: self._beat("paused"))
        if goes_on and self.wishes.paused:
            self._beat("running", force=True)
        return goes_on

    def _keep(self, training: Training) -> None:
        """Snapshots at their steps; at these and every few seconds, the state from which training can go on."""
        if training.stepping != self.stepping:  # a capture was tried, and failed
            self.stepping = training.stepping
            self.run.add_details(stepping=self.stepping)
        due = training.step in self.kept
        if due or time.monotonic() - self.last_save >= self.pause:
            write = resume.prepare_save(self.run.folder / "resume.safetensors", training)
            self.writer.add(partial(self._time, write))
            self.last_save = time.monotonic()
        if due:  # the second of the two: what is lost are never more than the steps since the last snapshot
            self.writer.add(self.series.take(self._snapshot(training.step)))

    def _time(self, write: Callable[[], None]) -> None:
        """Write what one can go on from, and see how long that takes."""
        began = time.monotonic()
        write()
        self.pause = max(SAVE_EVERY, SHARE * (time.monotonic() - began))

    def _end(self, training: Training) -> None:
        """Keep the last weights, look at them, and say why it ended."""
        run, step = self.run, training.step
        if training.done:
            status, reason = "finished", how_it_ended(training)
        elif self.wishes.tired:
            return  # it stays paused, for whoever comes back
        else:
            status, reason = "stopped", f"stopped by hand at step {step}"
        run.set_state("measuring", step, reason, memory(self.device))
        training.model.eval()
        self.series.take(self._snapshot(step))()
        left = run.folder / "resume.safetensors"
        resume.save(left, training)  # whoever is killed while it measures can measure again
        examine(run, training.model)
        run.set_state(status, step, reason, memory(self.device))
        if status == "finished":
            left.unlink(missing_ok=True)

    def _beat(self, status: str, force: bool = False) -> None:
        if force or time.monotonic() - self.last_beat >= HEARTBEAT:
            write = partial(self.run.set_state, status, self.step, memory=memory(self.device))
            if force:
                write()
            else:
                self.writer.add(write)
            self.last_beat = time.monotonic()

    def _leave(self, status: str, reason: str) -> None:
        """The last word, if the disk still takes one."""
        if self.team.leads:
            with contextlib.suppress(OSError):
                self.run.set_state(status, self.step, reason)

    def _snapshot(self, step: int) -> Path:
        return self.run.folder / "snapshots" / f"step-{step:06d}.safetensors"


def how_it_ended(training: Training) -> str:
    """Why a training that is done is done, in words."""
    config, step = training.config, training.step
    if training.solved:
        told = known_and_guessed(config)
        return f"solved{as_far(config)} at step {step}, after {training.seconds:.1f} s{told and f': {told}'}"
    aim = config.training.solved_at
    unsolved = aim <= 1 and training.task.lawful
    taken = "its only step" if step == 1 else f"all {step} steps"
    return f"{taken} taken" + (f"; not solved to {aim:.1%}" if unsolved else "")


def examine(run: Run, model: Network, sequences: int = EVALUATION_SEQUENCES) -> None:
    """Measure the last weights of a run, and keep a first look at them. The model must be in evaluation mode."""
    config, digest = run.config, run.digest()
    run.set_evaluation(evaluate(model, config, sequences) | {"snapshot": digest})
    if config.build_task().n_ctx <= WHOLE:
        run.set_example(_example(model, config, digest).pack())


def develop(run: Run, called: Callable[[], bool] = lambda: False, device: torch.device | str = "cpu") -> bool:
    """Make the film of a run that has ended, from its snapshots; False when `called` away before it was done.

    The models are looked at on `device`.
    """
    snapshots = run.snapshots()
    if run.state.live or not snapshots or (run.folder / "film.npz").exists():
        return True
    config = run.config

    def frames() -> Iterator[tuple[int, Network]]:
        for step, path in snapshots.items():
            if called():
                raise _Called
            yield step, checkpoints.load(path, device)[0]

    try:
        with lock.hold(run.folder):
            run.set_film(film(frames(), config.build_task(), snapshot=run.digest()).pack())
    except _Called:
        return False
    return True


class _Called(Exception):
    """Something more urgent has come up."""


def _example(model: Network, config: RunConfig, snapshot: str) -> Example:
    """The first look at a run, taken once."""
    task = config.build_task()
    said = say(model, task, task.example)
    return Example(task.example, said, sample(model, task, task.example, said=said), survey(model, task), snapshot)


def line_of(entry: Step) -> dict[str, Any]:
    """A step as a line of metrics.jsonl."""
    line: dict[str, Any] = {
        "step": entry.step,
        "loss": entry.loss,
        "learning_rate": float(f"{entry.learning_rate:.7g}"),
        "gradient_norm": entry.gradient_norm,
        "seconds": round(entry.seconds, 4),
        "milliseconds": round(entry.milliseconds, 2),
    }
    if entry.solved:
        line["solved"] = True
    if entry.held_out_loss is not None:
        line["held_out_loss"] = entry.held_out_loss
    if entry.accuracy is not None:
        line["accuracy"] = [round(float(value), 5) for value in entry.accuracy]
        line["probed"] = entry.probed
    return line


def sentence(error: BaseException) -> str:
    """The first line of what went wrong, for a person."""
    text = str(error).strip().split("\n")[0] or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        return f"it could not be written down: {error.strerror.lower()}"
    return text if isinstance(error, (ValueError, TrainingError)) else f"{type(error).__name__}: {text}"
