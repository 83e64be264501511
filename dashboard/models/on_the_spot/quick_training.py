"""Quick trainings: small models trained behind the page, bound by their steps and never by the clock.

So the answer to a click is the same on a busy machine. It is shown as it grows, and what was broken off is not kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event, Lock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np

from dashboard.models import background
from dashboard.models.background import Lane
from dashboard.models.cache import cached
from transformer.analysis.accuracy.result import Accuracy
from transformer.config import RunConfig

if TYPE_CHECKING:
    from transformer.training.loop import Step
    from transformer.training.quick import Answer as Trained


ANSWER_SEQUENCES = 2048
_TAKING = Lock()
"""Nobody takes a training while another, the last to watch it, leaves it."""


@dataclass(frozen=True)
class Answer:
    """A small model that was trained on the spot, and how right it is; or is being trained, and was last measured."""

    config: RunConfig
    solved: bool
    steps: int
    accuracy: Accuracy
    done: bool = True


def small(config: RunConfig, **changes: object) -> RunConfig:
    """The one-layer version of a run, with some of its model changed. Raises ConfigError when there is none."""
    from transformer.training.quick import small

    return small(config, **changes)


@dataclass(eq=False)
class Lesson:
    """A small model that is trained behind the page, shared by everybody who asks for the same one."""

    config: RunConfig
    lane: Lane
    mistake: str = ""
    """The mistake of the gallery that it is trained with; empty is none."""
    steps: list[Step] = field(default_factory=list)
    """Taken so far."""
    watchers: int = 0

    def __post_init__(self) -> None:
        self._ended = Event()
        self.future = self.lane.submit(self._train)

    def _train(self) -> Trained:
        if self.mistake:
            from transformer.mistakes import MISTAKES
            from transformer.mistakes import trained as trained_with

            return trained_with(MISTAKES[self.mistake], self.config.training.seed, go_on=self._goes_on)
        from transformer.training.quick import answer

        return answer(self.config, self._goes_on)

    def _goes_on(self, step: Step) -> bool:
        self.steps.append(step)
        return not self._ended.is_set()

    @property
    def done(self) -> bool:
        return self.future.done()

    def progress(self) -> tuple[int, bool, bool]:
        """How far it is: another value whenever there is something new to be shown."""
        return len(self.steps), self.waiting, self.done

    @property
    def waiting(self) -> bool:
        """Is another training first?"""
        return not (self.future.running() or self.done)

    @property
    def problem(self) -> str:
        """Why it broke off, if it did."""
        return background.problem(self.future)

    def result(self) -> Trained:
        """The model, once it is trained. Raises what broke it off."""
        return self.future.result()

    def leave(self) -> None:
        """Somebody looks on no more: what nobody watches and is not over is broken off, and forgotten."""
        with _TAKING:
            self.watchers -= 1
            if self.watchers == 0 and not self.done:
                _forget(self)
                self._ended.set()
                self.future.cancel()


def take(config: RunConfig, lane: Lane = background.LESSONS, mistake: str = "") -> Lesson:
    """The training of a model, begun when it is first asked for; whoever takes it looks on until they leave it.

    With a `mistake` the config is that mistake's own (`Mistake.config`).
    """
    with _TAKING:
        found = _lesson(config, lane, mistake)
        if found.problem:  # whoever saw it break off keeps it; nobody else is handed it
            _forget(found)
            found = _lesson(config, lane, mistake)
        found.watchers += 1
        return found


def is_kept(config: RunConfig, mistake: str = "") -> bool:
    """Has somebody asked for this training, so that looking at it begins none?"""
    return (repr(config), mistake) in _kept


_kept: WeakValueDictionary[tuple[str, str], Lesson] = WeakValueDictionary()
"""What is trained or being trained, as long as the cache or somebody who looks on has it."""


@cached(48)
def _lesson(config: RunConfig, _lane: Lane, mistake: str) -> Lesson:
    found = _kept[repr(config), mistake] = Lesson(config, _lane, mistake)
    return found


def _forget(found: Lesson) -> None:
    """Hand it to nobody any more."""
    _lesson.clear(found.config, found.lane, found.mistake)  # type: ignore[attr-defined]
    _kept.pop((repr(found.config), found.mistake), None)


def trained(config: RunConfig, mistake: str = "") -> Trained:
    """The model itself, with every step that it took; whoever asks waits for its end."""
    found = take(config, mistake=mistake)
    try:
        return found.result()
    finally:
        found.leave()


@cached(64)
def _measured(_found: Trained, config: RunConfig, length: int | None, sequences: int) -> Answer:
    """The same config is always the same model, so a measurement may outlive it."""
    from transformer.analysis.accuracy.by_position import accuracy_by_position

    task, seed = config.build_task(), config.training.seed + 1
    accuracy = accuracy_by_position(_found.model, task, sequences=sequences, length=length, seed=seed)
    return Answer(config, _found.solved, len(_found.steps), accuracy)


def shown(found: Lesson, length: int | None = None, sequences: int = ANSWER_SEQUENCES) -> Answer | None:
    """A model as its picture shows it: trained and measured anew, or as far as it is; None before its first step, and
    where it broke off.

    While it is trained its accuracy is what it was when last measured, on sequences of the greatest length.
    """
    if found.problem:
        return None
    if found.done:
        return _measured(found.result(), found.config, length, sequences)
    steps = list(found.steps)  # more may come at any moment
    last = next((step for step in reversed(steps) if step.accuracy is not None), None)
    if last is None or last.accuracy is None:
        return None
    task = found.config.build_task()
    names, groups = task.target_names(task.length), task.groups(task.length)
    correct = np.rint(last.accuracy * last.probed).astype(np.int64)
    accuracy = Accuracy(correct, last.probed, names, groups, task.chance, 0)
    return Answer(found.config, False, len(steps), accuracy, done=False)
