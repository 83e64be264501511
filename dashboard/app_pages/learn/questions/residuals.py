"""Question 4, why residual connections: a deep model with and without them, before training and trained."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.questions.figures.residuals import loss_lines
from dashboard.app_pages.learn.questions.settings import QuestionsSettings
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.numbers import signed
from dashboard.figures.layers import Line, layer_lines
from dashboard.models import background
from dashboard.models.cache import cached
from dashboard.models.model import Model
from dashboard.parts import waiting
from dashboard.parts.prose import plain, sentence
from dashboard.parts.widgets import bound, bound_choice
from dashboard.server.streamlit_private import DeltaGenerator
from dashboard.view import clicks, session
from transformer.analysis.accuracy import ceilings
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.foundation.claims import claim
from transformer.foundation.program import program
from transformer.foundation.words import counted

if TYPE_CHECKING:
    from transformer.analysis.stream.depth import Depth


NAMES = ("with", "without")
VANISHED = 0.1
"""Of the uppermost layer's gradient: less at the lowest, and it is said to vanish."""
HEIGHT = 390


def answer(model: Model) -> str:
    """What gets through a stack before training, and the race of the two."""
    one, two, three = st.columns([1, 0.95, 1.15], gap="large", vertical_alignment="bottom")
    with one:
        bound(st.slider, "Layers", "deep", also={"parted": False})
    with two:
        rates = list(RATES)
        rate = bound_choice(st.segmented_control, "Learning rate", "deep_rate", rates, rates[0], also={"parted": False})
    layers, asked = session.mine(QuestionsSettings).deep, session.mine(QuestionsSettings).parted
    running = _running(layers, rate) if asked and not session.first_look() else None
    with three:
        _button(running, asked, layers, rate)
    if not asked:
        _fresh(layers, st.container(key="stacked-question").columns(2, gap="large"), tall=300)
        _waiting(layers, rate)
    else:
        left, right = st.container(key="stacked-question").columns([1.35, 1], gap="large")
        with left:
            _trained(running)
        _fresh(layers, [right, right], tall=190)
    st.caption(_of(model))
    if running is not None and running.done and all(np.isfinite(each.share) for each in running.learners):
        return trained_headline(layers, *running.learners)
    return fresh_headline(layers, *(depth(layers, residual).alike[-1] for residual in (True, False)))


def _button(race: Race | None, asked: bool, layers: int, rate: str) -> None:
    """Train both; stop, while they are trained; and train them anew, where that was ended before its time."""
    if race is not None and not race.done:
        st.button("Stop", on_click=_stop, args=(race,), icon=":material/stop:", key="parted-stop")
        return
    ended = race is not None and (race.stopped or bool(race.problem))

    def train() -> None:
        if ended:
            st.session_state.pop("parted_stopped", None)
            forget(race)
        session.update(parted=True)

    st.button(
        "Train both",
        on_click=clicks.once(train),
        disabled=asked and not ended,
        icon=":material/play_arrow:",
        type="primary",
    )


def _running(layers: int, rate: str) -> Race:
    """The race of these settings, everybody's; or the one that this session stopped, as far as it came."""
    stopped: Race | None = st.session_state.get("parted_stopped")
    if stopped is not None and (stopped.n_layers, stopped.rate) == (layers, rate):
        return stopped
    return race(layers, rate)


@clicks.once
def _stop(race: Race) -> None:
    """End it, and keep what it learned for this session alone: it is no answer for others."""
    race.stop()
    if race.stopped:
        forget(race)
        st.session_state.parted_stopped = race


@claim
def trained_headline(layers: int, one: Learner, other: Learner) -> str:
    """How much of the answer both get right, once they are trained."""
    get = "gets" if layers == 1 else "get"
    return (
        f"With residual connections {counted(layers, 'layer')} {get} {one.share:.2f} of the answer right in "
        f"{counted(len(one.steps), 'step')}, without them {other.share:.2f} in {len(other.steps)}."
    )


@claim
def fresh_headline(layers: int, apart: float, alike: float) -> str:
    """How like one another the positions become, before training."""
    return (
        f"Before training, two positions have a mean cosine of {signed(apart)} after {counted(layers, 'layer')}; "
        f"without residual connections, {signed(alike)}."
    )


# --- before training


def _fresh(layers: int, places: Sequence[DeltaGenerator], tall: int) -> None:
    """What a stack of fresh blocks does to the tokens and to the gradient: two figures at two places."""
    found = [depth(layers, residual) for residual in (True, False)]
    makers = [Maker(f"untrained, {layers} layers, with and without residual connections", 0)]
    with places[0]:
        st.markdown("**Before training**: how similar the positions of a sequence become")
        alike = [Line(name, each.alike) for name, each in zip(NAMES, found, strict=True)]
        said = (
            f"Mean cosine of two positions after the last layer: {found[0].alike[-1]:.2f} with residual connections, "
            f"{found[1].alike[-1]:.2f} without."
        )
        figure = coloured(layer_lines, alike, across="layers passed", up="cosine")
        plot(figure, key="alike", alt=said, height=tall, makers=makers)
        st.caption(
            f"{said} Attention mixes positions. Residual connections keep them apart, and feed-forward layers slow the "
            f"mixing (Dong et al., 2021). The cosine of a stream with its own embedding ends at "
            f"{found[0].kept[-1]:.2f} with, {found[1].kept[-1]:.2f} without."
        )
    with places[1]:
        st.markdown("**The gradient** that reaches each layer, before training")
        norms = [Line(name, each.gradient) for name, each in zip(NAMES, found, strict=True)]
        ratios = [each.gradient[0] / each.gradient[-1] for each in found]
        said = (
            f"Layer 0’s gradient is {ratios[0]:.2g} times that of layer {layers - 1} with residual connections, "
            f"{ratios[1]:.2g} times without."
        )
        figure = coloured(layer_lines, norms, across="layer", up="norm", powers=True)
        plot(figure, key="gradients", alt=said, height=tall, makers=makers)
        lost = " So the gradient does not vanish here." if ratios[1] > VANISHED else ""
        st.caption(f"{said}{lost}")


# --- trained


def _trained(race: Race | None) -> None:
    """The race, as far as it is."""
    if race is None:
        waiting.hourglass("Both will now be trained …")
        return
    if not race.done:
        waiting.until(lambda: race.done, lambda: curves(race), news=race.progress)
        return
    curves(race)
    if race.problem:
        st.warning(sentence(plain(race.problem)), icon=":material/warning:")


def _waiting(layers: int, rate: str) -> None:
    """What would be trained."""
    config = deep(layers, True, rate)
    st.markdown(
        r"**Train both**: the same seed and the same sequences. They differ in one term: $x \leftarrow x + f(x)$ with, "
        r"$x \leftarrow f(x)$ without, for every sub-layer $f$"
    )
    st.caption(
        f"They reverse {config.task.length} digits with {layers} layers × {config.model.n_heads} heads, d_model "
        f"{config.model.d_model}. Each trains for at most {RATES[rate]} steps."
    )


def curves(race: Race) -> None:
    """Loss of both by step, against guessing and the floor."""
    taken = [len(each.steps) for each in race.learners]
    config, last = race.learners[0].config, max(taken)
    lines = [
        Line(name, np.array(each.losses[:n], dtype=np.float64))
        for name, each, n in zip(NAMES, race.learners, taken, strict=True)
    ]
    said = " ".join(
        f"{name[0].upper()}{name[1:]}: {_outcome(each)}." for name, each in zip(NAMES, race.learners, strict=True)
    )
    st.markdown("**The loss of both**, beside guessing and the lowest possible loss")
    figure = coloured(loss_lines, lines, floor=ceilings.loss_floor(config), guess=config.build_task().chance_loss)
    makers = [Maker(f"{config.model.n_layers} layers, with and without residual connections", last)]
    plot(figure, key="parted", alt=f"Loss by step. {said}", height=HEIGHT, makers=makers)
    st.caption(f"{said} Chance is {config.build_task().chance:.2f}. {_state(race)}".strip())


def _state(race: Race) -> str:
    """How far the race is, where it is not simply over."""
    if race.done:
        return "You stopped it." if race.stopped else ""
    return "Waiting for another training …" if race.waiting else "Still training …"


def _outcome(each: Learner) -> str:
    """How far one came."""
    if not each.steps:
        return "no step yet"
    end = "solved" if each.solved else "not solved"
    right = f"{each.share:.2f} of the answer right " if np.isfinite(each.share) else ""
    steps = f"{len(each.steps)} step{'s' if len(each.steps) > 1 else ''}"
    return f"{right}after {steps}, loss {each.losses[-1]:.2f}, {end}"


def _of(model: Model) -> str:
    """What the chosen model has."""
    if model.config.model.recurrent:
        return (
            f"{plain(model.name)} is a recurrent network: its gates carry a state through time, as residual "
            "connections do through layers."
        )
    has = "has residual connections" if model.config.model.residual else "has no residual connections"
    return f"{plain(model.name)} {has}. Any transformer can be trained without: {program()} train --no-residual"


# --- what the five questions of a lecture measure, each once. PyTorch is imported when the first of it is asked for

RATES = {"0.005": 300, "0.001": 600}
"""Learning rates with and without residual connections are trained at, and the steps that each may take at most."""
EVERY = 10
"""Steps between two measurements."""


# --- 4: residual connections


def deep(n_layers: int, residual: bool, rate: str = "0.005") -> RunConfig:
    """A narrow model of many layers, with residual connections or without; all else is the same, and so is the seed."""
    training = TrainingConfig(device="cpu", learning_rate=float(rate), max_steps=RATES[rate], evaluate_every=EVERY)
    return RunConfig(
        task=TaskConfig(length=4),
        model=ModelConfig(n_layers=n_layers, n_heads=2, d_model=32, d_ff=64, residual=residual),
        training=training,
    )


@cached(32)
def depth(n_layers: int, residual: bool) -> Depth:
    """What such a model does before its first step."""
    from transformer.analysis.stream.depth import look_down
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
        self.n_layers, self.rate = n_layers, rate
        self.learners = tuple(Learner(deep(n_layers, residual, rate)) for residual in (True, False))
        self._ended = Event()
        self._future = background.TRAININGS.submit(self._train)

    @property
    def problem(self) -> str:
        """Why it ended before its time, if it did so by itself."""
        return background.problem(self._future)

    def progress(self) -> tuple[object, ...]:
        """How far it is: another value whenever there is something new to be shown."""
        return self.waiting, self.done, [(len(each.steps), each.share) for each in self.learners]

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

    def _train(self) -> None:
        from transformer.model import build
        from transformer.training.loop import Training

        trainings = [Training(build(learner.config), learner.config) for learner in self.learners]
        while not self._ended.is_set():
            going = [pair for pair in zip(trainings, self.learners, strict=True) if not pair[0].done]
            if not going:
                return
            for training, learner in going:
                step = training.take_step()
                learner.losses.append(step.loss)
                learner.seconds.append(step.seconds)
                if step.accuracy is not None:
                    judged = np.array(training.task.groups(training.task.length)) == training.task.part
                    learner.share = float(step.accuracy[judged].mean())
                learner.solved = step.solved
                learner.steps.append(step.step)  # the last: whoever reads counts by these


@cached(8)
def race(n_layers: int, rate: str) -> Race:
    """Begin to train both, unless that is done already."""
    return Race(n_layers, rate)


def forget(ended: Race | None) -> None:
    """Let this race begin anew when it is next asked for; where another has begun since, that one stays."""
    if ended is not None and race(ended.n_layers, ended.rate) is ended:
        race.clear(ended.n_layers, ended.rate)  # type: ignore[attr-defined]
