"""What the five questions of a lecture measure, each once. PyTorch is imported when the first of it is asked for."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from dashboard.keeping import kept
from dashboard.models import Model
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig

if TYPE_CHECKING:
    from transformer.analysis.depth import Depth
    from transformer.analysis.feeds import Feeds
    from transformer.analysis.passes import Passes
    from transformer.tasks import Question

LENGTHS = (8, 16, 32, 64, 128, 256)
"""Of the sequences that are timed."""
RATES = {"0.005": 300, "0.001": 600}
"""Learning rates with and without residual connections are trained at, and the steps that each may take at most."""
SECONDS, EVERY = 30.0, 10
"""Of training for both together, at most; and steps between two measurements."""
behind = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lecture")
"""What is trained while a question is on the screen, one after the other: clicks go on meanwhile."""


# --- 1: time


@dataclass(frozen=True)
class Timed:
    """Both networks, on the device that a training would take."""

    passes: Passes
    device: str


@kept(8, "Reading sequences of up to 256 tokens …")
def timed(n_layers: int) -> Timed:
    """One pass of recurrent layers and of transformer blocks of the same size, at every one of LENGTHS."""
    from transformer.analysis.passes import time_passes
    from transformer.training.device import describe_device, resolve_device

    device = resolve_device()
    return Timed(time_passes(n_layers, LENGTHS, device), describe_device(device))


# --- 3: the dense layers


@kept(32)
def feeds(model: Model) -> Feeds:
    """Its feed-forward layers beside each other. Raises ConfigError where there are none."""
    from transformer.analysis.feeds import compare_feeds

    return compare_feeds(model.transformer(), model.task, model.task.example)


def permuted(model: Model, question: Question) -> float:
    """How far feeding permuted positions is from permuting what was fed, at most."""
    return _permuted(model, question.tobytes())


@kept(32)
def _permuted(model: Model, question: bytes) -> float:
    from transformer.analysis.feeds import permuted

    return permuted(model.transformer(), model.task, np.frombuffer(question, dtype=np.int64))


# --- 4: residual connections


def deep(n_layers: int, residual: bool, rate: str = "0.005") -> RunConfig:
    """A narrow model of many layers, with residual connections or without; all else is the same, and so is the seed."""
    training = TrainingConfig(device="cpu", learning_rate=float(rate), max_steps=RATES[rate], evaluate_every=EVERY)
    return RunConfig(
        task=TaskConfig(length=4),
        model=ModelConfig(n_layers=n_layers, n_heads=2, d_model=32, d_ff=64, residual=residual),
        training=training,
    )


@kept(32)
def depth(n_layers: int, residual: bool) -> Depth:
    """What such a model does before its first step."""
    from transformer.analysis.depth import look_down
    from transformer.model import Transformer, build

    config = deep(n_layers, residual)
    model = build(config)
    assert isinstance(model, Transformer)
    return look_down(model.eval(), config.build_task())


@dataclass
class Learner:
    """One of the two that are trained, so far."""

    config: RunConfig
    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    share: float = float("nan")
    """Of the answer, right when last measured."""
    solved: bool = False


class Race:
    """The same model with and without residual connections, a step of one and a step of the other, behind the page."""

    def __init__(self, n_layers: int, rate: str) -> None:
        self.learners = tuple(Learner(deep(n_layers, residual, rate)) for residual in (True, False))
        self.problem = ""
        """Why it ended before its time, if it did so by itself."""
        self._ended = Event()
        self._future: Future[None] = behind.submit(self._run)

    @property
    def waiting(self) -> bool:
        """Is another training first?"""
        return not (self._future.running() or self._future.done())

    @property
    def done(self) -> bool:
        return self._future.done()

    @property
    def stopped(self) -> bool:
        return self.done and self._ended.is_set()

    def stop(self) -> None:
        """End it; what is learned so far stays. One that is over is left as it is."""
        if not self.done:
            self._ended.set()
            if not self._future.cancel():  # one that has not begun is over at once
                self.wait()

    def wait(self) -> None:
        """Until it is over."""
        wait([self._future])

    def _run(self) -> None:
        try:
            self._train()
        except Exception as error:  # a thread has nobody else to tell
            self.problem = str(error) or type(error).__name__

    def _train(self) -> None:
        from transformer.model import build
        from transformer.training.loop import Training

        trainings = [Training(build(learner.config), learner.config) for learner in self.learners]
        while not self._ended.is_set() and sum(training.seconds for training in trainings) < SECONDS:
            going = [pair for pair in zip(trainings, self.learners, strict=True) if not pair[0].done]
            if not going:
                return
            for training, learner in going:
                step = training.take_step()
                learner.losses.append(step.loss)
                learner.seconds.append(step.seconds)
                if step.accuracy is not None:
                    half = np.array(training.task.groups(training.task.length)) == "second half"
                    learner.share = float(step.accuracy[half].mean())
                learner.solved = step.solved
                learner.steps.append(step.step)  # the last: whoever reads counts by these


@kept(8)
def race(n_layers: int, rate: str) -> Race:
    """Begin to train both, unless that is done already."""
    return Race(n_layers, rate)


def forget(n_layers: int, rate: str) -> None:
    """Let this race begin anew when it is next asked for, if it was ended before its time; no other is touched."""
    found = race(n_layers, rate)
    if found.stopped or found.problem:
        race.clear(n_layers, rate)  # type: ignore[attr-defined]
