"""Question 1, how recurrence and time differ: what waits for what, counted on the graph and measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.questions.figures.schedule import Schedule, Timing, pass_lines, schedule_heatmaps
from dashboard.app_pages.learn.questions.settings import QuestionsSettings
from dashboard.components.plot import coloured, plot
from dashboard.models.cache import cached
from dashboard.models.model import Model
from dashboard.parts import waiting
from dashboard.parts.prose import plain
from dashboard.parts.widgets import bound
from dashboard.view import session
from transformer.analysis.sequential.dependencies import moments, waits_for, way
from transformer.foundation.claims import claim

if TYPE_CHECKING:
    from transformer.analysis.sequential.timing import Passes


def answer(model: Model) -> str:
    """The schedules of a GRU and of a transformer, the ways through both, and milliseconds."""
    mine = session.mine(QuestionsSettings)
    one, two, _ = st.columns([1, 1, 1.2], gap="large")
    with one:
        bound(st.slider, "Tokens", "unrolled")
    with two:
        bound(st.slider, "Layers", "stacked")
    length, layers = mine.unrolled, mine.stacked
    causal = np.tril(np.ones((length, length), dtype=bool))
    waits = {kind: waits_for(kind, layers, causal) for kind in ("attention", "recurrent", "writing")}
    taken = {kind: moments(graph) for kind, graph in waits.items()}
    last = {kind: int(each.max()) for kind, each in taken.items()}
    left, right = st.container(key="stacked-question").columns([1.5, 1], gap="large")
    with left:
        _schedules(taken, last)
    with right:
        st.markdown("**Steps that wait for one another**, and the path from the first token to the last output")
        st.markdown(
            "| counted | GRU | transformer |\n|:--|--:|--:|\n"
            f"| sequential steps, reading | {last['recurrent']} | {last['attention']} |\n"
            f"| path length, in states | {way(waits['recurrent'])} | {way(waits['attention'])} |\n"
            f"| sequential steps, writing | {last['writing']} | {last['writing']} |"
        )
        _times(layers)
        st.caption(
            f"{plain(model.name)}: {_of(model)}. For n tokens, a layer of a GRU takes O(n) sequential steps and one of "
            "a transformer O(1) (Vaswani et al., 2017, table 1)."
        )
    return headline(length, last["recurrent"], last["attention"])


@claim
def headline(tokens: int, recurrent: int, attention: int) -> str:
    """How many steps must wait for one another in each, to read so many tokens."""
    return f"A GRU needs {recurrent} sequential steps to read {tokens} tokens; a transformer needs {attention}."


def _schedules(taken: dict[str, np.ndarray], last: dict[str, int]) -> None:
    st.markdown("**When each state can be computed**: colour and number are the layer")
    schedules = [
        Schedule("transformer, reading", taken["attention"]),
        Schedule("GRU, reading", taken["recurrent"]),
        Schedule("either, writing its own output", taken["writing"]),
    ]
    said = (
        f"The transformer has all its states after {last['attention']} sequential steps, the GRU after "
        f"{last['recurrent']}. When they write, each takes {last['writing']}."
    )
    plot(coloured(schedule_heatmaps, schedules), key="schedule", alt=said, height=496, makers=[])
    st.caption(
        f"{said} In a layer of the transformer no position waits for another, so it trains on all positions at once. "
        "When it writes, it must finish a token before it can read it."
    )


def _of(model: Model) -> str:
    """What the chosen model waits for, on its longest input."""
    config, task = model.config.model, model.task
    length, layers = task.n_ctx, config.n_layers
    staircase, columns = length + layers - 1, layers  # what `moments` counts, at any length
    own, other = (staircase, columns) if config.recurrent else (columns, staircase)
    beside = "a transformer" if config.recurrent else "a GRU"
    stack = "each of its stacks reads" if config.architecture in ("encoder-decoder", "gru") else "it reads"
    ones = "sequential step" if own == 1 else "sequential steps"
    return f"{stack} {length} tokens in {own} {ones}; {beside} of the same depth would need {other}"


def _times(layers: int) -> None:
    """Milliseconds of a pass, once somebody asks for them."""
    if not session.mine(QuestionsSettings).timed:
        st.button(
            "Time one pass of each",
            on_click=lambda: session.update(timed=True),
            icon=":material/timer:",
            help="A GRU and a transformer with as many weights read one sequence of 8 to 256 tokens",
        )
        return
    if session.first_look():
        waiting.hourglass("Both will now be timed …")
        return
    found = timed(layers)
    passes, longest = found.passes, found.passes.lengths[-1]
    lines = [Timing("transformer", passes.attention), Timing("GRU", passes.recurrent)]
    slow, fast = passes.recurrent, passes.attention
    said = (
        f"At {longest} tokens the GRU takes {slow[-1]:.1f} ms, {slow[-1] / slow[0]:.1f} times as long as at "
        f"{passes.lengths[0]}; the transformer takes {fast[-1]:.1f} ms, {fast[-1] / fast[0]:.1f} times as long."
    )
    st.markdown(f"**{said}**")
    plot(coloured(pass_lines, passes.lengths, lines), key="passes", alt=said, height=250, makers=[])
    recurrent, attention = passes.weights
    st.caption(
        f"One sequence whose tokens are all known, as in training. The transformer has {attention:,} weights, the GRU "
        f"{recurrent:,}. The fastest of 7 passes, on {found.device}."
    )


LENGTHS = (8, 16, 32, 64, 128, 256)
"""Of the sequences that are timed."""


# --- 1: time


@dataclass(frozen=True)
class Timed:
    """Both networks, on this server's CPU: its GPUs are left to what is trained."""

    passes: Passes
    device: str


@cached(8, "Reading sequences of up to 256 tokens …")
def timed(n_layers: int) -> Timed:
    """One pass of recurrent layers and of transformer blocks of the same size, at every one of LENGTHS."""
    from transformer.analysis.sequential.timing import time_passes
    from transformer.training.device import describe_device, resolve_device

    device = resolve_device("cpu")
    return Timed(time_passes(n_layers, LENGTHS, device), describe_device(device))
