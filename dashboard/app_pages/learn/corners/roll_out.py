"""A corner, hidden state by hidden state: the steps of encoder and decoder in numbers, and one step gate by gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.corners import words
from dashboard.components.origin import Maker
from dashboard.figures.html.number_table import Block, Label
from dashboard.figures.kit.numbers import written
from dashboard.models.cache import cached
from dashboard.models.walks.corners import ROLLED, View
from dashboard.parts.claims import foremost
from dashboard.parts.prose import capital
from dashboard.parts.steps import Table, draw_line, number_block
from dashboard.parts.widgets import stepped
from transformer.corners import CornerConfig, every_walk
from transformer.foundation.claims import claim
from transformer.foundation.words import listed

if TYPE_CHECKING:
    from transformer.recurrent.corners import CornerStep
    from transformer.recurrent.roll_out import Cell, RollOut


FORMULA = (
    r"\begin{aligned}r &= \sigma(W_{xr}\,x + b_{xr} + W_{hr}\,h + b_{hr})\\"
    r"z &= \sigma(W_{xz}\,x + b_{xz} + W_{hz}\,h + b_{hz})\\"
    r"n &= \tanh(W_{xn}\,x + b_{xn} + r\odot(W_{hn}\,h + b_{hn}))\\"
    r"h' &= (1-z)\odot n + z\odot h\end{aligned}"
)
"""A GRU's step, in PyTorch's form: x is read, h is the state before, h' the one after."""


def section(view: View, makers: list[Maker]) -> None:
    """The whole walk in a table, and one of its steps gate by gate."""
    st.markdown("**A corner, hidden state by hidden state**: read, hand over, predict twice")
    config, step = view.config, view.step
    if config.d_model > ROLLED:
        st.caption(f"A state has {config.d_model} numbers here. Up to {ROLLED} can be shown: choose a smaller width.")
        return
    if step is None or not step.weights:
        st.caption("The numbers follow when the training has ended.")
        return
    st.markdown(f"**{words.squeezed(config, view.given)}**")
    rolled = opened(config, step, view.walk)
    names = titles(view.given)
    name = stepped("corner_roll", names)
    at = list(names).index(name)
    whole(rolled, at).draw(key="corners-roll", says=handed(rolled), makers=makers)
    st.caption(handed(rolled))
    cell = (*rolled.encoder, *rolled.decoder)[at]
    left, right = st.container(key="stacked-roll").columns([1.8, 1], gap="medium")
    said = worked(cell, names[name])
    with left:
        one(cell).draw(key="corners-cell", says=said, makers=makers)
        st.caption(said)
    with right:
        st.markdown(f"$\\displaystyle {FORMULA}$\n\n$\\displaystyle {first_number(cell)}$")
        code(at, len(rolled.encoder))


@cached(64)
def _opened(config: CornerConfig, number: int, walk: int, _step: CornerStep) -> RollOut:
    """A walk said with the weights of a step, of which `number` is told apart."""
    from transformer.recurrent.corners import build_walker
    from transformer.recurrent.roll_out import roll_out

    model = build_walker(config)
    model.load_state_dict(_step.weights)
    return roll_out(model.eval(), every_walk(config.most, config.noise), walk)


def opened(config: CornerConfig, step: CornerStep, walk: int) -> RollOut:
    """A walk of those that are drawn, said with the weights of a step."""
    return _opened(config, step.step, walk, step)


def titles(given: int) -> dict[str, str]:
    """What each step is called, by its name in a link."""
    return {f"e{i}": f"Encoder {i}" for i in range(1, given + 1)} | {f"d{i}": f"Decoder {i}" for i in (1, 2)}


def code(at: int, given: int) -> None:
    """The lines that take this step."""
    if at == given:
        draw_line(("transformer.recurrent.sequence:EncoderDecoder.decode", "memory.last if first is None"))
    else:
        draw_line(("transformer.recurrent.sequence:Gates.forward", "layer(x,"))
    draw_line(("transformer.recurrent.roll_out:gates", "(1 - z) * n"))
    if at >= given:
        draw_line(("transformer.recurrent.corners:Walker.forward", "self.out(features)"))


# --- the tables


def states(rolled: RollOut) -> np.ndarray:
    """The states after each step, float [given + 2, d_model]: the encoder's, and the decoder's two."""
    return np.stack([cell.state for cell in (*rolled.encoder, *rolled.decoder)])


def whole(rolled: RollOut, at: int) -> Table:
    """Every step of the walk, a row each, and between encoder and decoder what is handed over."""
    nothing, none = np.full(len(rolled.handed_over), np.nan), np.full(2, np.nan)
    read = [cell.read for cell in rolled.encoder] + [none] + [cell.read for cell in rolled.decoder]
    states = [
        *(cell.state for cell in rolled.encoder),
        rolled.handed_over,
        *(cell.state for cell in rolled.decoder),
    ]
    before = len(rolled.encoder) + 1
    labels = [
        *(Label("encoder", i + 1, chosen=at == i) for i in range(len(rolled.encoder))),
        Label("the vector", above=True),
        *(Label("decoder", i + 1, above=i == 0, chosen=at == before - 1 + i) for i in range(len(rolled.decoder))),
    ]
    said = [none] * before + [cell.said for cell in rolled.decoder if cell.said is not None]
    contexts = [nothing] * before + [cell.context for cell in rolled.decoder if cell.context is not None]
    true = [none] * before + list(rolled.true)
    blocks = [number_block("read", ("reads x", "reads y"), np.stack(read), digits=2), _vector("state", "h", states)]
    if len(contexts) == len(labels):  # with attention
        blocks.append(_vector("context", "c", contexts))
    blocks.append(number_block("said", ("says x", "says y"), np.stack(said), digits=2, present=True))
    blocks.append(number_block("true", ("true x", "true y"), np.stack(true), digits=2))
    return Table(labels, blocks, axis=None)


def one(cell: Cell) -> Table:
    """One step, a row for each number of the state."""
    columns = {
        "before": ("h", cell.before),
        "reset": ("r", cell.reset),
        "update": ("z", cell.update),
        "new": ("n", cell.new),
        "from_new": ("(1−z) n", (1 - cell.update) * cell.new),
        "from_before": ("z h", cell.update * cell.before),
        "state": ("h'", cell.state),
    }
    labels = [Label("number", i + 1) for i in range(len(cell.state))]
    return Table(
        labels,
        [
            number_block(name, (heading,), values[:, None], share=name in ("reset", "update"), present=name == "state")
            for name, (heading, values) in columns.items()
        ],
        axis="d_model",
    )


def _vector(name: str, symbol: str, rows: Sequence[np.ndarray]) -> Block:
    table = np.stack(rows)
    return number_block(
        name, tuple(f"{symbol}_{i + 1}" for i in range(table.shape[1])), table, digits=2, axis="d_model"
    )


# --- words


def point(vector: np.ndarray, digits: int = 2) -> str:
    """A vector on one line."""
    return f"({', '.join(written(float(value), digits) for value in vector)})"


def handed(rolled: RollOut) -> str:
    """What happens from the first state to the last corner."""
    n = len(rolled.encoder)
    first, second = rolled.decoder
    assert first.said is not None
    assert second.said is not None
    own, after, (near, far) = point(first.said), point(second.said), rolled.missed
    return (
        f"The encoder reads {n} corners and hands over the vector {point(rolled.handed_over)}. The decoder begins "
        f"with it, reads the last given corner and predicts {own}, {near:.2f} from the true corner. Then it reads this "
        f"prediction and predicts {after}, {far:.2f} from the true corner."
    )


@claim
def worked(cell: Cell, name: str) -> str:
    """One step in a sentence: which numbers keep most of the state before and which least, as it is written."""
    said = f"{name} reads {point(cell.read)}."
    if not cell.before.any():
        return f"{said} The state before it is 0: the new state is (1 − z) n."
    keeps, renews = (foremost(dict(enumerate(z.tolist()))) for z in (cell.update, -cell.update))
    most, least = float(cell.update.max()), float(cell.update.min())
    if len(keeps) == len(cell.update):
        return f"{said} With z = {most:.2f} it keeps that share of the state before."
    return (
        f"{said} {capital(_numbers(keeps))} keep{'s' * (len(keeps) == 1)} most of the state before (z = {most:.2f}), "
        f"{_numbers(renews)} least (z = {least:.2f})."
    )


def _numbers(places: Sequence[int]) -> str:
    """Which numbers: "number 2", "numbers 2 and 3"."""
    return f"number{'s' * (len(places) > 1)} {listed([str(place + 1) for place in places])}"


def first_number(cell: Cell) -> str:
    """LaTeX: the first number of the new state, worked out."""

    def bracketed(value: float) -> str:
        text = f"{value:.3f}"
        return f"({text})" if text.startswith("-") and text.strip("-0.") else text.lstrip("-")

    z, n, h = (float(values[0]) for values in (cell.update, cell.new, cell.before))
    after = f"{float(cell.state[0]):.3f}"
    after = after if after.strip("-0.") else after.lstrip("-")
    return rf"h'_1 = (1 - {z:.3f})\cdot {bracketed(n)} + {z:.3f}\cdot {bracketed(h)} = {after}"
