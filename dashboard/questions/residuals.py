"""Why are the residual connections there? A deep model with them and without: before the first step, and trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import clicks, lecture, session
from dashboard.attention import palette
from dashboard.components.origin import Maker
from dashboard.components.plot import plot
from dashboard.controls import bound, bound_choice, sentence
from dashboard.figures.depth import Line, layer_lines, loss_lines
from dashboard.models import Model
from dashboard.prose import plain
from transformer.analysis import ceilings

NAMES = ("with", "without")
VANISHED = 0.1
"""Of the uppermost layer's gradient: less at the lowest, and it is said to vanish."""
AGAIN = 0.5
"""Seconds between two looks at a training that is under way."""
HEIGHT = 390


def answer(model: Model) -> str:
    """What gets through a stack before training, and the race of the two."""
    one, two, three = st.columns([1, 0.95, 1.15], gap="large", vertical_alignment="bottom")
    with one:
        bound(st.slider, "Layers", "deep", also={"parted": False}, min_value=1, max_value=8)
    with two:
        rates = list(lecture.RATES)
        rate = bound_choice(st.segmented_control, "Learning rate", "deep_rate", rates, rates[0], also={"parted": False})
    layers, asked = session.settings().deep, session.settings().parted
    race = lecture.race(layers, rate) if asked and not session.first_look() else None
    with three:
        _button(race, asked, layers, rate)
    if not asked:
        _fresh(layers, st.container(key="questions-row").columns(2, gap="large"), tall=300)
        _waiting(layers, rate)
    else:
        left, right = st.container(key="questions-row").columns([1.35, 1], gap="large")
        with left:
            _trained(race)
        _fresh(layers, [right, right], tall=190)
    st.caption(_of(model))
    return _headline(race, layers)


def _button(race: lecture.Race | None, asked: bool, layers: int, rate: str) -> None:
    """Train both; stop, while they are trained; and train them anew, where that was ended before its time."""
    if race is not None and not race.done:
        st.button("Stop", on_click=clicks.once(race.stop), icon=":material/stop:", key="parted-stop")
        return
    ended = race is not None and (race.stopped or bool(race.problem))

    def train() -> None:
        if ended:
            lecture.forget(layers, rate)
        session.update(parted=True)

    st.button(
        "Train both, here and now",
        on_click=clicks.once(train),
        disabled=asked and not ended,
        icon=":material/play_arrow:",
        type="primary",
    )


def _headline(race: lecture.Race | None, layers: int) -> str:
    """What was learned, where it was trained and measured; else how much of the tokens gets through."""
    many = f"{layers} layer{'s' if layers > 1 else ''}"
    if race is not None and race.done and all(np.isfinite(each.share) for each in race.learners):
        one, other = race.learners
        return (
            f"With residuals {many} {'reach' if layers > 1 else 'reaches'} {one.share:.2f} in {len(one.steps)} "
            f"steps, without them {other.share:.2f} in {len(other.steps)}."
        )
    apart, alike = (lecture.depth(layers, residual).alike[-1] for residual in (True, False))
    return f"Through {many} two places come to a cosine of {apart:.2f}; without residuals, of {alike:.2f}."


# --- before training


def _fresh(layers: int, places: Sequence[DeltaGenerator], tall: int) -> None:
    """What a stack of fresh blocks does to the tokens and to the gradient: two figures at two places."""
    found = [lecture.depth(layers, residual) for residual in (True, False)]
    makers = [Maker(f"untrained, {layers} layers, with and without residual connections", 0)]
    with places[0]:
        st.markdown("**Before the first step**: how alike the places of a sequence become")
        alike = [Line(name, each.alike) for name, each in zip(NAMES, found, strict=True)]
        said = (
            f"Cosine of two places’ streams at the end: {found[0].alike[-1]:.2f} with residual connections, "
            f"{found[1].alike[-1]:.2f} without."
        )
        figure = layer_lines(alike, across="layers passed", up="cosine", palette=palette())
        plot(figure, key="alike", alt=said, height=tall, makers=makers)
        st.caption(
            f"{said} Attention mixes places; without residual connections nothing keeps them apart (Dong et al., "
            f"2021). With its embedding a stream ends at {found[0].kept[-1]:.2f} with, {found[1].kept[-1]:.2f} without."
        )
    with places[1]:
        st.markdown("**The gradient** that reaches each layer, before the first step")
        norms = [Line(name, each.gradient) for name, each in zip(NAMES, found, strict=True)]
        ratios = [each.gradient[0] / each.gradient[-1] for each in found]
        said = (
            f"Layer 0’s gradient is {ratios[0]:.2g} times that of layer {layers - 1} with residual connections, "
            f"{ratios[1]:.2g} times without."
        )
        figure = layer_lines(norms, across="layer", up="norm", powers=True, palette=palette())
        plot(figure, key="gradients", alt=said, height=tall, makers=makers)
        lost = " Here it is not the gradient that vanishes." if ratios[1] > VANISHED else ""
        st.caption(f"{said}{lost}")


# --- trained


def _trained(race: lecture.Race | None) -> None:
    """The race, as far as it is."""
    if race is None:
        st.caption(":material/hourglass_top: Both are about to be trained …")
        return
    if not race.done:
        st.fragment(_watch, run_every=AGAIN)(race, count())
        return
    curves(race)
    if race.problem:
        st.warning(sentence(plain(race.problem)), icon=":material/warning:")


def _waiting(layers: int, rate: str) -> None:
    """What would be trained."""
    config = lecture.deep(layers, True, rate)
    st.markdown(
        r"**Train both**: the same seed, the same sequences, one term apart: $x \leftarrow x + f(x)$ with, "
        r"$x \leftarrow f(x)$ without, at every sub-layer $f$"
    )
    st.caption(
        f"Reversal of {config.task.length} digits, layers × heads {layers} × {config.model.n_heads}, d_model "
        f"{config.model.d_model}: at most {lecture.RATES[rate]} steps each, {lecture.SECONDS:g} s for both."
    )


def _watch(race: lecture.Race, looks: Iterator[int]) -> None:
    """The curves so far; when both are trained, the page says what came out."""
    if next(looks) and race.done:
        clicks.again()
    curves(race)


def curves(race: lecture.Race) -> None:
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
    st.markdown("**The loss of both**, against guessing and the least that is possible")
    figure = loss_lines(
        lines, floor=ceilings.loss_floor(config), guess=config.build_task().chance_loss, palette=palette()
    )
    makers = [Maker(f"{config.model.n_layers} layers, with and without residual connections", last)]
    plot(figure, key="parted", alt=f"Loss by step. {said}", height=HEIGHT, makers=makers)
    st.caption(f"{said} Chance is {config.build_task().chance:.2f}. {_state(race)}".strip())


def _state(race: lecture.Race) -> str:
    """How far the race is, where it is not simply over."""
    if race.done:
        return "Stopped by hand." if race.stopped else ""
    return "It waits for another training …" if race.waiting else "Still training …"


def _outcome(each: lecture.Learner) -> str:
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
        return f"{model.name} is a recurrent network: its gates keep a state in time, as these do in depth."
    has = "has residual connections" if model.config.model.residual else "has no residual connections"
    return f"{model.name} {has}. Any transformer can be trained without: python -m transformer train --no-residual"
