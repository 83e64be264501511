"""Accuracy under the model's own mask, under another mask, and of a small model trained under that one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from dashboard.app_pages.attention.masks.figures.accuracy_by_state import State, accuracy_by_state_bars
from dashboard.app_pages.attention.masks.settings import MasksSettings
from dashboard.app_pages.attention.masks.ways import choose_clicked, chosen_target
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.models.menu import COMPILED
from dashboard.models.model import Model
from dashboard.models.on_the_spot import quick_training
from dashboard.models.on_the_spot.quick_training import Answer, Lesson
from dashboard.parts import waiting
from dashboard.parts.prose import capital
from dashboard.parts.widgets import bound
from dashboard.view import session, training
from dashboard.view.link import limits
from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.result import Accuracy
from transformer.analysis.intervals import CAUTION, wilson
from transformer.config import ConfigError, RunConfig
from transformer.masks import Mask
from transformer.tasks import Ceiling

LIVE_TARGETS, LIVE_SEQUENCES = 32, 1024
"""Targets of the largest task that is trained unasked, and sequences that its accuracy is measured on."""
LONGER = 4
"""How many times more steps the next training may take."""
SEVERAL = {"n_heads": 4, "query_key_gain": 1.0}
"""What a small model of several layers needs to find a way through them: one head a layer does not learn to relay."""
NEAR = 0.005
"""How far below its ceiling a position still counts as at it."""


@dataclass(frozen=True)
class Seed:
    """Where to begin: a run, a mask, and what to expect."""

    name: str
    run: str
    mask: str
    target: int
    expect: str


SEEDS = (
    Seed(
        "Causal mask",
        "reverse-aligned",
        "causal",
        2,
        "Expect the ceiling to fall for the first half. Its answers stand further right, and the mask forbids every "
        "layer to look there. So the first half stays at chance, however long it is trained. The second half can still "
        "be right.",
    ),
    Seed(
        "Window of 2",
        "reverse-aligned",
        "sliding-window:2",
        3,
        "Expect a hill. Two layers with a window of 2 reach four places far, so only the four outputs in the middle "
        "can be known. The outer two of these need both layers: a token between hands the symbol on. That takes "
        "longer to learn.",
    ),
    Seed(
        "Hide the separator",
        "reverse",
        "hide:9",
        10,
        "Expect the ceiling to stay, because the separator carries no symbol. If accuracy falls, this model has "
        "learned to use the separator without needing it. Retraining then wins the accuracy back.",
    ),
)


def seeds() -> None:
    """Links to begin with, and what to expect of the one that is open."""
    view = session.settings()
    # A lecture that shows no such buttons shows no words that lead to them either.
    columns = st.container(key="control-seeds").columns([1, 4, 4, 4], vertical_alignment="center")
    columns[0].markdown("Or open")
    for seed, column in zip(SEEDS, columns[1:], strict=False):
        column.button(
            f"{seed.name} ({seed.run})",
            key=f"seed-{seed.mask}",
            on_click=_begin,
            args=(seed,),
            disabled=seed.run not in session.choices(),
            width="stretch",
        )
    name = session.chosen().name
    for seed in SEEDS:
        if (name, view.mask) == (seed.run, seed.mask):
            st.info(seed.expect, icon=":material/lightbulb:")


def _begin(seed: Seed) -> None:
    session.open_run(seed.run, mask=seed.mask, target=seed.target, input="")


# --- the three pictures


def pictures(model: Model, mask: Mask, length: int) -> None:
    """Own mask, this mask, retrained: three pictures, and the sentence that joins them."""
    view, task = session.settings(), model.task
    before = model.accuracy(view.sequences, length=length)
    after = model.accuracy(view.sequences, mask, length)
    own = ceilings.ceiling(model.config, length)
    possible = ceilings.ceiling(model.config, length, mask)
    target = chosen_target(task, length)
    lesson, why = _lesson(model, mask, length)

    def draw() -> None:
        retrained = None if lesson is None else quick_training.shown(lesson, length, LIVE_SEQUENCES)
        states = [
            _state("own mask", own, before),
            _state("this mask", possible, after),
            _state(_made(retrained), possible, None if retrained is None else retrained.accuracy),
        ]
        said = joined(mask, possible, before, after, retrained) + why
        figure = coloured(accuracy_by_state_bars, states, task.chance, before.names, target=target)
        makers = [model.maker(), *([Maker(f"small model, mask {mask.label}", retrained.steps)] if retrained else [])]
        plot(figure, key="three", alt=said, height=330, on_click=lambda: choose_clicked("three"), makers=makers)
        st.markdown(f"**{said}**")
        if lesson is not None and retrained is None and not lesson.done:
            waiting.hourglass("A small model is about to be retrained …")

    waiting.grown([] if lesson is None else [lesson], draw)
    retrained = quick_training.shown(lesson, length, LIVE_SEQUENCES) if lesson and lesson.done else None
    _controls(model, mask, possible, lesson is not None, retrained)


def _made(retrained: Answer | None) -> str:
    """What the third picture is of."""
    if retrained is None:
        return "retrained"
    return f"{'retrained' if retrained.done else 'retraining'}, {_steps(retrained)}"


def _steps(retrained: Answer) -> str:
    return f"{retrained.steps:,} step{'' if retrained.steps == 1 else 's'}"


def _state(title: str, possible: Ceiling, measured: Accuracy | None) -> State:
    ceiling = possible.greatest
    if measured is None or len(measured.names) != len(ceiling):  # of another length, while it is trained
        return State(title, ceiling)
    low, high = measured.interval()
    chosen = _answers(measured)
    return State(
        f"{title}\nanswer: {measured.mean[chosen].mean():.2f}",
        ceiling,
        measured.mean,
        low,
        high,
        measured.sequences,
    )


def _answers(measured: Accuracy) -> np.ndarray:
    """The targets that belong to the answer."""
    return np.array([name.startswith("y") for name in measured.names])


def joined(mask: Mask, ceiling: Ceiling, before: Accuracy, after: Accuracy, retrained: Answer | None) -> str:
    """What can be had under the mask, what the model has of it, and what a small one learned to have."""
    chosen = _answers(before)
    most, known = float(ceiling.accuracy[chosen].mean()), int((ceiling.accuracy[chosen] == 1).sum())
    told = np.array_equal(ceiling.accuracy[chosen], ceiling.greatest[chosen])
    best = (
        f"at most {most:.2f} of the answer can be right"
        if told
        else f"the best guess, which does not know the length, has {most:.2f} of the answer right"
    )
    words = (
        f"{capital(mask.under())}, {known} of {int(chosen.sum())} answers can be known: {best}. "
        f"The model has {before.mean[chosen].mean():.2f} of it right under its own mask and "
        f"{after.mean[chosen].mean():.2f} under this one"
    )
    if retrained is None:
        return f"{words}. "
    now = retrained.accuracy
    share = now.mean[_answers(now)].mean()
    if not retrained.done:
        return f"{words}. A small model is being retrained: {_steps(retrained)}, {share:.2f} of it right so far."
    words += f". A small model, retrained for {_steps(retrained)}, has {share:.2f} of it right: "
    if beyond(now, ceiling).any():
        return f"{words}more than the ceiling, so something leaks."
    return words + ("not yet at its ceiling." if short_of(now, ceiling).any() else "at its ceiling, and not above it.")


def beyond(measured: Accuracy, ceiling: Ceiling) -> np.ndarray:
    """Targets that are right more often than can be, by over four standard errors."""
    low, _ = wilson(measured.correct, measured.sequences, CAUTION)
    return low > ceiling.greatest + CAUTION * ceiling.greatest_error


def short_of(measured: Accuracy, ceiling: Ceiling) -> np.ndarray:
    """Targets of the answer that are right less often than the best guess, by over four standard errors."""
    _, high = wilson(measured.correct, measured.sequences, CAUTION)
    return _answers(measured) & (high < ceiling.least - NEAR - CAUTION * ceiling.error)


# --- training anew


def small_version(config: RunConfig, mask: Mask, length: int) -> RunConfig:
    """The small model for a mask: as few layers as have the ceiling of all. Raises ConfigError when there is none."""
    full = ceilings.ceiling(config, length, mask).accuracy
    task = config.build_task()
    layers = next(
        n
        for n in range(1, config.model.n_layers + 1)
        if np.array_equal(ceilings.ceiling_of_mask(task, mask, n, length).accuracy, full)
    )
    return quick_training.small(config, mask=str(mask), n_layers=layers, **(SEVERAL if layers > 1 else {}))


def _lesson(model: Model, mask: Mask, length: int) -> tuple[Lesson | None, str]:
    """The small model's training, or none and why."""
    mine = session.mine(MasksSettings)
    asked = mine.retrain == str(mask)
    small_enough = len(model.task.target_names(model.task.length)) <= LIVE_TARGETS
    if not asked and not (mine.live and small_enough):
        return None, "No small model is retrained until you ask for it."
    try:
        config = small_version(model.config, mask, length)
        training = replace(config.training, max_steps=session.settings().patience)
        return waiting.lesson("retraining", replace(config, training=training)), ""
    except ConfigError as error:
        return None, f"No small model can be retrained under this mask: {error}."


def _controls(model: Model, mask: Mask, ceiling: Ceiling, begun: bool, retrained: Answer | None) -> None:
    """When to train, how many steps, and the way to a training of the whole model."""
    view = session.settings()
    # Beside the mask there is room for two buttons of whole words, not for three.
    switch = st.container()
    more, full = st.columns(2, vertical_alignment="center")
    with switch:
        bound(
            st.toggle,
            "Retrain at every change",
            "live",
            help="Trains a small model from the start after every change of the mask",
        )
    if not begun:
        more.button(
            "Retrain under this mask",
            on_click=lambda: session.update(retrain=str(mask)),
            icon=":material/play_arrow:",
            width="stretch",
        )
    elif retrained is not None and short_of(retrained.accuracy, ceiling).any():
        patience = min(int(limits("patience")[1]), LONGER * view.patience)
        more.button(
            f"Train up to {patience:,} steps",
            on_click=lambda: session.update(retrain=str(mask), patience=patience),
            disabled=view.patience >= patience,
            icon=":material/more_time:",
            width="stretch",
        )
    full.button(
        "Train in full",
        on_click=lambda: session.update(**{**training.fields_of(model.config), "train_mask": str(mask)}),
        disabled=model.name == COMPILED,
        help="Writes the model and this mask into the panel on the left. The button Train there starts the training.",
        icon=":material/tune:",
        width="stretch",
    )
    if retrained is not None:
        layers, heads = retrained.config.model.n_layers, retrained.config.model.n_heads
        st.caption(
            f"The small model: {layers} layer{'s' if layers > 1 else ''} of {heads} "
            f"head{'s' if heads > 1 else ''} and no "
            f"feed-forward, {retrained.steps} steps from random weights; {retrained.accuracy.sequences:,} sequences. "
            "Pale steps: the ceiling, the most that can be right. Dotted: chance. 95 % intervals. Click "
            "a bar to see "
            "which tokens can reach that output."
        )
