"""How runs stand beside each other: their curves, read as they grow, what sets them apart, and how far they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dashboard.parts.prose import encoding_name
from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.result import Accuracy, verdict
from transformer.config import PROBE_SEQUENCES, TEXT, RunConfig, TaskConfig
from transformer.tasks import TASKS
from transformer.text.perplexity import perplexity as perplexity_of
from transformer.training.library import changes
from transformer.training.runs import Run, State


@dataclass
class Course:
    """A run's metrics as columns; a look adds what is new."""

    run: Run
    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    measured: list[int] = field(default_factory=list)
    """Which of the steps were measured, from 0, …"""
    shares: list[float] = field(default_factory=list)
    """… and how much of the part that the task is judged by was right there."""
    nats: list[float] = field(default_factory=list)
    """What a token that was held out of a text cost, at each of the steps in `read`."""
    read: list[int] = field(default_factory=list)
    probed: int = 0
    """Most fresh sequences behind one of them."""
    solved: bool = False
    _read: tuple[dict[str, Any], ...] = ()
    _judged: tuple[int, ...] = ()

    def update(self) -> Course:
        """Add what was written since; all of it anew when the file is another one, as after a resumption."""
        lines, read = self.run.stored_metrics().lines, self._read
        if read and (len(lines) < len(read) or lines[len(read) - 1] is not read[-1]):
            vars(self).update(vars(Course(self.run)))
        for line in lines[len(self._read) :]:
            self._add(line)
        self._read = lines
        return self

    def _add(self, line: dict[str, Any]) -> None:
        step, loss, seconds = line["step"], float(line["loss"]), float(line["seconds"])
        if "accuracy" in line:
            if not self._judged:
                task = self.run.config.build_task()
                groups = task.groups(task.length)
                self._judged = tuple(i for i, group in enumerate(groups) if group == task.part)
            share = float(np.mean([line["accuracy"][i] for i in self._judged]))
            self.measured.append(len(self.steps))
            self.shares.append(share)
            self.probed = max(self.probed, int(line.get("probed", PROBE_SEQUENCES)))
        if "held_out_loss" in line:
            self.nats.append(float(line["held_out_loss"]))
            self.read.append(len(self.steps))
        self.steps.append(step)
        self.losses.append(loss)
        self.seconds.append(seconds)
        self.solved = bool(line.get("solved"))


def part_of(tasks: Iterable[TaskConfig]) -> str:
    """The part that several tasks are judged by, after "the"; where they call it differently, the last part."""
    found = {TASKS[task.task].parts[-1] for task in tasks if not task.text}
    return found.pop() if len(found) == 1 else "last part"


@dataclass(frozen=True)
class Label:
    """What a run is called among others."""

    text: str
    """On its own: "no positions", "seed 1", or the run's name."""
    phrase: str
    """After "solved": "without positions", "with seed 1", "by" and its name."""

    @property
    def title(self) -> str:
        """At the head of a sentence; a run's name stays as it is."""
        named = self.phrase == f"by {self.text}"
        return self.text if named else f"{self.text[0].upper()}{self.text[1:]}"


@dataclass(frozen=True)
class Standing:
    """Where a run stands in a comparison."""

    name: str
    """Its folder's."""
    label: Label
    config: RunConfig
    state: State
    step: int
    seconds: float | None
    """What its steps took; None where nothing was written of them."""
    solved: bool
    share: float | None
    """Of `part`, right at the last measurement: of the final weights, where they were measured."""
    evaluation: dict[str, Any] | None
    perplexity: float | None = None
    """Of what was held out of the text that it reads, at the last measurement; None where it reads none."""

    @property
    def reads(self) -> bool:
        """Does it read a text, of which nobody knows the law?"""
        return bool(self.config.task.text)

    @property
    def part(self) -> str:
        """What its task is judged by, after "the"."""
        return part_of([self.config.task])

    @property
    def accuracy(self) -> Accuracy | None:
        """The measurement at its end."""
        return None if self.evaluation is None else Accuracy.from_evaluation(self.evaluation, self.config.build_task())

    @property
    def leaks(self) -> bool:
        """Is more right than could be known without being shown the answer?"""
        accuracy = None if self.reads else self.accuracy
        return accuracy is not None and verdict(accuracy, self.config).endswith("your mask leaks")

    @property
    def cheats(self) -> bool:
        """Does its mask show it what it has to say?"""
        most, honest = ceilings.ceiling(self.config).greatest, ceilings.honest_ceiling(self.config).greatest
        return bool((most == 1).any()) if self.reads else bool((most > honest).any())

    @property
    def reachable(self) -> float:
        """How much of `part` its mask lets be known, on average, by somebody who is told the length."""
        task = self.config.build_task()
        judged = np.array(task.groups(task.length)) == task.part
        return float(ceilings.ceiling(self.config).greatest[judged].mean())


def standing(course: Course, label: Label) -> Standing:
    """Where a run stands now."""
    run, state = course.run, course.run.state
    evaluation = None if state.live else run.evaluation
    share = course.shares[-1] if course.shares else None
    if evaluation is not None:
        share = float(evaluation["second_half"])
    perplexity = perplexity_of(course.nats[-1]) if course.nats else None
    if evaluation is not None:
        perplexity = evaluation.get("perplexity")
    step, seconds = (course.steps[-1], course.seconds[-1]) if course.steps else (state.step, None)
    return Standing(run.name, label, run.config, state, step, seconds, course.solved, share, evaluation, perplexity)


def comparable(one: TaskConfig, other: TaskConfig) -> bool:
    """Do two tasks ask for the same? Of one text, windows of any length do."""
    return one == (replace(other, length=one.length) if one.task == TEXT else other)


def labels(runs: Sequence[Run]) -> list[Label]:
    """What sets each of some runs apart: its own value where they differ in one thing only, else its name."""
    configs = [run.config for run in runs]
    words = {text.rsplit(" ", 3)[0] for config in configs for text in changes(config, configs[0])}
    if len(words) == 1:
        word = words.pop()
        found = [_value(config, word) for config in configs]
        if len({label.text for label in found}) == len(found):
            return found
    return [Label(run.name, f"by {run.name}") for run in runs]


def _value(config: RunConfig, word: str) -> Label:
    """The one thing that differs, as one would say it."""
    model = config.model
    if word == "positions" and model.encoding.told == "nowhere":
        return Label("no positions", "without positions")
    if word == "mask":
        said = f"mask {model.mask_label}"
        return Label("no mask", "without a mask") if model.mask == "full" else Label(said, f"under the {said}")
    if word == "attention" and not model.attends:
        return Label("no attention", "without attention")
    said = {
        "attention": f"{model.attention} attention",
        "teacher forcing": f"teacher forcing {config.training.teacher_forcing:g}",
        "heads": f"{model.n_heads} head{'s' * (model.n_heads > 1)}",
        "layers": f"{model.n_layers} layer{'s' * (model.n_layers > 1)}",
        "positions": f"{encoding_name(model.positions)} positions",
        "kind of norm": model.kind_of_norm.title,
        "seed": f"seed {config.training.seed}",
        "length": f"length {config.task.length}",
        "d_model": f"d_model {model.d_model}",
        "learning rate": f"learning rate {config.training.learning_rate:g}",
        "batch": f"batch {config.training.batch_size}",
    }.get(word, "")
    return Label(said, f"with {said}")
