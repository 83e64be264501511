"""Logits to words: one output from the last residual vector to probabilities, its loss and the loss' gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.whole_model.block.figures.logits import token_panels, vector_bars
from dashboard.app_pages.whole_model.block.outputs import pick_output
from dashboard.app_pages.whole_model.block.settings import BlockSettings
from dashboard.components.plot import coloured, plot
from dashboard.figures.html.step_strip import Shape
from dashboard.figures.kit.numbers import signed, small
from dashboard.models.cache import cached
from dashboard.models.model import Model, words_of
from dashboard.models.passages import sayable
from dashboard.parts.prose import plain
from dashboard.parts.steps import draw_code
from dashboard.parts.widgets import bound
from dashboard.view import session
from transformer.foundation.claims import claim

if TYPE_CHECKING:
    from transformer.analysis.stream.unembedding import Output
    from transformer.tasks import Question


MOST = 16
"""Tokens that get a row each; of more, the others share one."""


def answer(model: Model) -> str:
    """One output: its vectors, its tokens, and what the right one costs."""
    from transformer.analysis.stream.unembedding import loss, loss_gradient, softmax

    question = session.question(model)
    sample = model.sample(question)
    place = pick_output(model, sample)
    temperature = session.mine(BlockSettings).softened
    found = output(model, question, place)
    shares, trained = softmax(found.logits, temperature), softmax(found.logits)
    cost = None if found.target is None else loss(found.logits, found.target)
    gradient = None if found.target is None else loss_gradient(found.logits, found.target)
    left, right = st.container(key="stacked-logits").columns([1, 1.6], gap="large")
    with left:
        _vectors(model, found)
    with right:
        bound(st.slider, "Temperature T of the softmax", "softened", step=0.1, width=260)
        _tokens(model, found, shares, gradient, temperature)
        _cost(model, found, trained, cost, place)
    if temperature != 1:
        return _headline_at(model, found, shares, temperature, place)
    return _headline(model, found, trained, cost, place)


def _minus(value: float) -> str:
    """A number that is not negative, with a minus before it unless it is 0."""
    return f"−{small(value)}" if value else "0"


@claim
def _headline(model: Model, found: Output, shares: np.ndarray, cost: float | None, place: int) -> str:
    """What is said there and what it costs, from the numbers, at the temperature of training."""
    names = model.task.vocabulary
    said = int(shares.argmax())
    first = f"Output {place + 1} says '{names[said]}' with probability {small(shares[said])}"
    if cost is None or found.target is None:
        return f"{first}; it is not part of the answer."
    if said == found.target:
        return f"{first}; that is right and costs {small(cost)} nats."
    right = f"the right token '{names[found.target]}' gets {small(shares[found.target])}"
    return f"{first}; {right} and costs {small(cost)} nats."


def _headline_at(model: Model, found: Output, shares: np.ndarray, temperature: float, place: int) -> str:
    """What is said there at a temperature other than that of training."""
    names, said = model.task.vocabulary, int(shares.argmax())
    first = f"At temperature {temperature:g}, output {place + 1} says '{names[said]}' with probability "
    if found.target is None or said == found.target:
        return f"{first}{small(shares[said])}."
    right = f"the right token '{names[found.target]}' with {small(shares[found.target])}"
    return f"{first}{small(shares[said])}, and {right}."


def rows(shares: np.ndarray, target: int | None) -> np.ndarray:
    """The tokens that get a row, the likeliest first, the right one always among them."""
    order = np.argsort(-shares, kind="stable")
    if len(order) <= MOST + 1:
        return order
    order = order[:MOST]
    if target is not None and target not in order:
        order[-1] = target
    return order


def _tokens(model: Model, found: Output, shares: np.ndarray, gradient: np.ndarray | None, temperature: float) -> None:
    """Logit, probability and gradient, a row a token."""
    vocabulary = model.task.vocabulary
    order = rows(shares, found.target)
    names = [vocabulary[token] for token in order]
    others = len(shares) - len(order)
    columns = [found.logits[order].astype(np.float64), shares[order]]
    if gradient is not None:
        columns.append(gradient[order])
    if others:
        names.append(f"{others:,} others")
        rest = [np.nan, 1 - shares[order].sum()] + ([] if gradient is None else [-gradient[order].sum()])
        columns = [np.append(column, value) for column, value in zip(columns, rest, strict=True)]
    right = None if found.target is None else order.tolist().index(found.target)
    words = (
        f"At temperature {temperature:g} the likeliest of {sayable(model.task)} are "
        + ", ".join(f"'{vocabulary[token]}' {small(shares[token])}" for token in order[:3])
        + "."
    )
    slopes = None if gradient is None else columns[2]
    figure = coloured(token_panels, names, columns[0], columns[1], slopes, right)
    plot(figure, key="logits-tokens", alt=words, height=70 + 25 * len(names))
    st.caption(plain(words) + (" ✓ marks the right token." if right is not None else ""))


def _vectors(model: Model, found: Output) -> None:
    """The residual stream behind the last block, and behind the final norm, and what makes logits of it."""
    normed = model.config.model.norm == "pre"
    vectors = [("residual stream after the last block", found.stream)]
    if normed:
        vectors.append(("after the final norm", found.normed))
        words = (
            f"The final norm brings the vector from length {np.linalg.norm(found.stream):.2f} to "
            f"{np.linalg.norm(found.normed):.2f}."
        )
    else:
        length = np.linalg.norm(found.stream)
        words = f"This model has no final norm: the vector, of length {length:.2f}, is read as it is."
    plot(coloured(vector_bars, vectors), key="logits-vectors", alt=words, height=130 * len(vectors) + 30)
    st.caption(words)
    st.markdown(
        rf"$z = \mathrm{{{model.config.model.kind_of_norm.title}}}(x)\,W_U + b_U$" if normed else r"$z = x\,W_U + b_U$"
    )
    d, v = ("d_model", model.config.model.d_model), ("d_vocab", len(model.task.vocabulary))
    draw_code(
        (Shape("x", (d,)), Shape("W_U", (d, v)), Shape("logits", (v,))),
        ("transformer.model:Transformer.forward", 'trace("logits"'),
    )


def _cost(model: Model, found: Output, shares: np.ndarray, cost: float | None, place: int) -> None:
    """The softmax and the loss in formulas, with the numbers of one token: the right one, or the likeliest."""
    token = int(shares.argmax()) if found.target is None else found.target
    name, logit, share = plain(model.task.vocabulary[token]), float(found.logits[token]), float(shares[token])
    softmax = r"p_i = \dfrac{e^{z_i/T}}{\sum_j e^{z_j/T}}"
    reached = f"'{name}' has the logit {signed(logit)}. At T = 1 that makes the probability {small(share)}."
    if cost is None:
        st.markdown(f"${softmax}$")
        st.markdown(
            f"{reached} Output {place + 1} is not part of the answer: no right token is marked, and no loss is shown."
        )
        return
    loss = r"L = -\ln p_{\text{right}}, \qquad \dfrac{\partial L}{\partial z_i} = p_i - [\,i = \text{right}\,]"
    st.markdown(rf"${softmax}, \qquad {loss}$")
    st.markdown(
        f"{reached} That costs {small(cost)} nats. The gradient is {_minus(1 - share)} at '{name}' and p at every "
        "other token: against the gradient the right logit goes up and all others go down. Loss and gradient are "
        "those of training, at T = 1."
    )


@cached(64)
def output(model: Model, question: Question, place: int) -> Output:
    """One output of the pass in which the model reads its own words."""
    from transformer.analysis.stream.unembedding import look_at_output

    return look_at_output(model.transformer(), model.task, question, place, said=words_of(model, question))
