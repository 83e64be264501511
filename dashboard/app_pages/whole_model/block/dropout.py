"""Dropout: one input in training mode and in evaluation mode, and why what is kept is made larger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.whole_model.block.figures.dropout import copies_bars, passes_dots
from dashboard.app_pages.whole_model.block.outputs import pick_output
from dashboard.app_pages.whole_model.block.settings import BlockSettings
from dashboard.components.plot import coloured, plot
from dashboard.figures.html.step_strip import Shape
from dashboard.figures.kit.numbers import tiny
from dashboard.models import budget
from dashboard.models.cache import cached
from dashboard.models.model import Model, words_of
from dashboard.parts.claims import foremost
from dashboard.parts.prose import plain
from dashboard.parts.steps import draw_code
from dashboard.parts.widgets import controlled
from dashboard.view import session
from dashboard.view.fields import MOST_SEED
from dashboard.view.link import limits
from transformer.analysis.findings import Sample
from transformer.foundation.claims import claim
from transformer.foundation.words import counted, listed

if TYPE_CHECKING:
    from transformer.analysis.stream.dropout import Passes
    from transformer.tasks import Question


PASSES, COPIES = 10, 1000
USUAL = 0.1
"""The rate of the paper's base model (section 5.4): a model that was trained without dropout is shown with it."""
MOST_DIMENSIONS = 64
"""Of a wider vector, so many dimensions are drawn."""
STEP = 0.05


def answer(model: Model) -> str:
    """Both pictures, for the rate and the draw that the view names."""
    question = session.question(model)
    sample = model.sample(question)
    rate, seed = _controls(model), session.mine(BlockSettings).dropout_seed
    # Half of what may be computed while somebody waits, for each of the two modes.
    most = budget.passes(model.config.model, model.task.d_vocab, 2 * len(sample.read))
    found = passes(model, question, rate, max(2, min(PASSES, int(most))), seed)
    left, right = st.container(key="stacked-dropout").columns([1.35, 1], gap="large")
    with left:
        _modes(model, sample, found)
    with right:
        place = pick_output(model, sample, most=8)  # as many as fit into a column
        _scaling(vector(model, question, place), rate, seed, sample.read[place], place)
    return _headline(found, sample.is_answer)


def _controls(model: Model) -> float:
    """The rate, another draw, and what the model was trained with."""
    own = model.config.model.dropout
    default = own or USUAL
    named = session.mine(BlockSettings).dropped
    low, high = limits("dropped")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width=260):
            controlled(
                st.slider,
                "Dropout rate p in training mode",
                low,
                high,
                step=STEP,
                key="control-dropped",
                value=default if named is None else named,
                picked=lambda rate: session.update(dropped=None if rate == default else rate),
            )
        st.button("Drop others", on_click=_redraw, icon=":material/casino:", help="Draw anew which numbers are dropped")
        with st.container(width="stretch"):
            st.caption(f"{_trained(model, own)} The slider sets p for this page only; the weights stay the same.")
    return default if named is None else named


def _redraw() -> None:
    session.update(dropout_seed=(session.mine(BlockSettings).dropout_seed + 1) % MOST_SEED)


def _trained(model: Model, rate: float) -> str:
    """With which rate it was trained, in a sentence."""
    name = plain(model.name)
    if model.run is None:
        return f"{name} was written by hand: no training, and so no dropout."
    if rate == 0:
        return f"{name} was trained with dropout 0: for it the two modes were the same."
    return f"{name} was trained with dropout {rate:g}."


def _amount(value: float) -> str:
    return f"{value:.2f}" if value >= 0.005 else tiny(value)


def _spread(found: Passes, shown: np.ndarray) -> float:
    """The widest range of one output's probability in training mode."""
    return float(np.ptp(found.training[:, shown], axis=0).max())


@claim
def _headline(found: Passes, shown: np.ndarray) -> str:
    """What the two modes do to one input, from their numbers."""
    n = len(found.training)
    passes = "both passes" if n == 2 else f"all {n} passes"
    if found.rate == 0 and found.training_alike and found.evaluation_alike:
        return f"With dropout 0 both modes are the same: all {2 * n} passes agree to the last bit."
    evaluation = (
        f"in evaluation mode {passes} agree to the last bit"
        if found.evaluation_alike
        else "in evaluation mode they differ as well"
    )
    return (
        f"With dropout {found.rate:g}, {n} passes of one input in training mode give probabilities up to "
        f"{_amount(_spread(found, shown))} apart; {evaluation}."
    )


@claim
def range_sentence(found: Passes, shown: np.ndarray, names: Sequence[str]) -> str:
    """At which of the outputs `shown`, at which `names` are predicted, the probability ranges widest in training mode,
    and how often another token is likelier then."""
    n, outputs = len(found.training), len(shown)
    low, high = (ends(found.training[:, shown], axis=0) for ends in (np.min, np.max))
    widths = dict(enumerate((high - low).tolist()))
    widest = foremost(widths)
    width, at = f"{widths[widest[0]]:.2f}", listed([str(shown[each] + 1) for each in widest])
    gets = f"'{names[widest[0]]}' gets {low[widest[0]]:.2f} to {high[widest[0]]:.2f} in training mode"
    if width == "0.00":
        said = "In training mode no probability here changes by as much as 0.005"
    elif outputs == 1:
        said = f"At output {at} {gets}"
    elif len(widest) == 1:
        said = f"The widest range is at output {at}: {gets}"
    elif len(widest) == outputs:
        said = f"In training mode the probability ranges as widely at all {outputs} outputs, by {width}"
    else:
        said = f"In training mode the probability ranges most widely at outputs {at}, by {width} at each"
    return (
        f"{said}. In {found.changed[shown].sum()} of {n * outputs} predictions ({counted(outputs, 'output')} × {n} "
        "passes) training mode prefers another token."
    )


def _modes(model: Model, sample: Sample, found: Passes) -> None:
    """The probabilities of the answer's outputs, pass by pass."""
    shown = np.flatnonzero(sample.is_answer)
    names = [model.task.vocabulary[token] for token in found.predicted[shown]]
    st.markdown(f"**One input, {len(found.training)} passes in each mode**")
    words = range_sentence(found, shown, names)
    figure = coloured(passes_dots, found.training[:, shown], found.evaluation[:, shown], names)
    plot(figure, key="dropout-passes", alt=words, height=340)
    st.caption(plain(words))
    st.caption(
        "The health check *Evaluation mode* demands the second mode: with dropout on, patterns, logits and accuracies "
        "come out differently at each look."
    )
    d, length = ("d_model", model.config.model.d_model), ("query", len(sample.read))
    draw_code(
        (Shape("output of the sub-layer", (length, d)), Shape("dropped", (length, d))),
        ("transformer.blocks:Block.forward", 'trace("resid_mid"'),
    )


def _scaling(whole: np.ndarray, rate: float, seed: int, token: str, place: int) -> None:
    """One vector, one dropped copy, and the mean of many."""
    from transformer.analysis.stream.dropout import drop

    copies = drop(whole, rate, COPIES, seed)
    mean = copies.mean(axis=0, dtype=np.float64)
    one, length = copies[0], float(np.linalg.norm(whole))
    st.markdown(f"**The output of the first self-attention at '{plain(token)}' ({place + 1}), dropped**")
    st.markdown(r"$\tilde x_i = \dfrac{m_i}{1-p}\,x_i,\quad P(m_i = 1) = 1-p,\quad E[\tilde x_i] = x_i$")
    kept, numbers = int(np.count_nonzero(one)), int(np.count_nonzero(whole))
    words = (
        f"One copy keeps {kept} of its {numbers} numbers that are not 0, each times 1/(1 − {rate:g}) = "
        f"{1 / (1 - rate):.2f}."
    )
    if length:
        off = float(np.linalg.norm(mean - whole)) / length
        words += (
            f" The mean of {COPIES:,} copies is {off:.3f} of the vector’s length away from it; without the factor it "
            f"would be about {1 - rate:.2f} times the vector."
        )
    some = slice(MOST_DIMENSIONS)
    figure = coloured(copies_bars, whole[some], one[some], mean[some], COPIES)
    plot(figure, key="dropout-copies", alt=words, height=300)
    more = f" Drawn: the first {MOST_DIMENSIONS} of {len(whole)} dimensions." if len(whole) > MOST_DIMENSIONS else ""
    st.caption(plain(words) + more)


@cached(32, "Passing it through, again and again …")
def passes(model: Model, question: Question, rate: float, count: int, seed: int) -> Passes:
    """One question, so many times in each mode, while the model reads its own words."""
    from transformer.analysis.stream.dropout import repeat_passes

    said = words_of(model, question)
    return repeat_passes(model.transformer(), model.task, question, rate=rate, passes=count, seed=seed, said=said)


@cached(64)
def vector(model: Model, question: Question, place: int) -> np.ndarray:
    """The vector that is dropped again and again, float [d_model]."""
    from transformer.analysis.stream.dropout import sublayer_output

    return sublayer_output(model.transformer(), model.task, question, place, said=words_of(model, question))
