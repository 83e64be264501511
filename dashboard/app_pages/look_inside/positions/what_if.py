"""The same model with another positional encoding: a quick training at a click."""

from __future__ import annotations

import streamlit as st

from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.figures import accuracy
from dashboard.models import quick_training
from dashboard.parts.prose import sentence
from dashboard.parts.widgets import bound
from dashboard.view import session
from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.result import verdict
from transformer.config import ConfigError, RunConfig
from transformer.foundation.words import counted

LONGER = 4.0
"""How many times longer the next answer may take."""

MINUTES = (
    "To read a text takes minutes to learn, so nothing is trained here and now: choose otherwise in the panel on the "
    "left, press Train, and compare the two under “Runs and races”."
)


def what_if(words: str, config: RunConfig, **changes: object) -> None:
    """Offer to train the one-layer version of a run with some of its model changed, and show how right it becomes."""
    if not config.build_task().lawful:
        st.caption(MINUTES)
        return
    if not bound(st.toggle, f"What if it were trained {words}?", "answer", help="A small model, trained here and now"):
        return
    try:
        answer = quick_training.answer(quick_training.small(config, **changes), session.settings().budget)
    except ConfigError as error:
        st.info(f"It cannot be trained that way: {error}.", icon=":material/info:")
        return
    measured, ceiling = answer.accuracy, ceilings.ceiling(answer.config).accuracy
    low, high = measured.interval()
    figure = coloured(
        accuracy.accuracy_by_position_bars,
        measured.mean,
        low,
        high,
        ceiling,
        measured.chance,
        measured.names,
        groups=measured.groups,
        sequences=measured.sequences,
    )
    end = "solved" if answer.solved else "not solved yet"
    found = sentence(verdict(measured, answer.config))
    taken = f"{counted(answer.steps, 'step')} and {answer.seconds:.2f} s"
    said = f"One layer, one head, trained {words}: {end} after {taken}. {found}"
    st.markdown(f"**{said}**")
    maker = Maker(f"one layer trained on the spot {words}", answer.steps)
    plot(figure, key="what-if", alt=said, height=300, makers=[maker])
    short = bool((high < ceiling).any())
    caption, button = st.columns([3, 1], vertical_alignment="center")
    caption.caption(
        f"{measured.sequences:,} fresh sequences, 95 % intervals. "
        + ("It is not yet at the ceiling." if short else "It is at its ceiling.")
    )
    if short:
        budget = min(30.0, session.settings().budget * LONGER)
        button.button(
            f"Train for {budget:g} s",
            on_click=lambda: session.update(budget=budget),
            disabled=budget == session.settings().budget,
            icon=":material/more_time:",
            width="stretch",
        )
