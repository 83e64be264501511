"""The same model with another positional encoding: a quick training at a click."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dashboard.components.origin import Maker
from dashboard.components.plot import plot
from dashboard.models.on_the_spot import quick_training
from dashboard.models.on_the_spot.quick_training import Lesson
from dashboard.parts import waiting
from dashboard.parts.prose import plain, sentence
from dashboard.parts.widgets import bound
from dashboard.parts.yardstick import accuracy_bars
from dashboard.view import session
from dashboard.view.link import limits
from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.result import as_far, verdict
from transformer.config import ConfigError, RunConfig
from transformer.foundation.words import counted

LONGER = 4
"""How many times more steps the next answer may take."""

MINUTES = (
    "Training on a text takes minutes, so nothing is trained here. Choose other settings in the panel on the "
    "left, press "
    "Train, and compare the two under “Runs and races”."
)


def what_if(words: str, config: RunConfig, **changes: object) -> None:
    """Offer to train the one-layer version of a run with some of its model changed, and show how right it becomes."""
    if not config.build_task().lawful:
        st.caption(MINUTES)
        return
    if not bound(st.toggle, f"What if it were trained {words}?", "answer", help="A small model, trained here and now"):
        return
    try:
        small = quick_training.small(config, **changes)
        training = replace(small.training, max_steps=session.settings().patience)
        lesson = waiting.lesson("what-if", replace(small, training=training))
    except ConfigError as error:
        st.info(f"It cannot be trained that way: {plain(str(error))}.", icon=":material/info:")
        return
    waiting.grown([lesson], lambda: _shown(words, lesson))
    if lesson.done and not lesson.problem and not lesson.result().solved:
        patience = min(int(limits("patience")[1]), LONGER * session.settings().patience)
        st.button(
            f"Train up to {patience:,} steps",
            on_click=lambda: session.update(patience=patience),
            disabled=patience == session.settings().patience,
            icon=":material/more_time:",
        )


def _shown(words: str, lesson: Lesson) -> None:
    """The small model, trained or as far as it is: how right it is at each position."""
    answer = quick_training.shown(lesson)
    if answer is None:
        if not lesson.done:
            waiting.hourglass("Training a small model …")
        return
    measured = answer.accuracy
    taken = counted(answer.steps, "step")
    made = f"One layer, one head, trained {words}"
    if answer.done:
        found = sentence(verdict(measured, answer.config))
        said = f"{made}: {f'solved{as_far(answer.config)}' if answer.solved else 'not solved'} after {taken}. {found}"
    else:
        said = f"{made}: {taken} so far."
    st.markdown(f"**{said}**")
    figure = accuracy_bars(measured, ceilings.ceiling(answer.config).greatest)
    maker = Maker(f"one layer trained on the spot {words}", answer.steps)
    plot(figure, key="what-if", alt=said, height=300, makers=[maker])
    st.caption(f"{measured.sequences:,} fresh sequences, 95 % intervals.")
