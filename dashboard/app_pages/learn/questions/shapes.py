"""Question 2, which dimensions Q, K and V have: a live attention with shapes of one’s choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.questions.figures.shapes import falk, shapes_to_scale
from dashboard.app_pages.learn.questions.settings import QuestionsSettings
from dashboard.components.plot import coloured, plot
from dashboard.models.model import Model
from dashboard.parts.prose import plain
from dashboard.parts.widgets import bound
from dashboard.view import session
from transformer.foundation.claims import claim
from transformer.foundation.words import counted

if TYPE_CHECKING:
    from torch import Tensor


SLIDERS = (
    ("Queries", "n_queries", "How many positions look"),
    ("Keys", "n_keys", "How many positions can be looked at"),
    ("Values", "n_values", "One for each key"),
    ("d of Q", "d_query", "The width of a query, $d_k$: columns of $W_Q$"),
    ("d of K", "d_key", "The width of a key, $d_k$: columns of $W_K$"),
    ("d of V", "d_value", "The width of a value, $d_v$: columns of $W_V$"),
)


@dataclass(frozen=True)
class Tried:
    """One attention with these shapes: its matrices, or where it broke."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    pattern: np.ndarray | None
    output: np.ndarray | None
    weights: int
    """Numbers that W_Q, W_K, W_V, W_O and their biases hold."""
    broken: str = ""
    """PyTorch's own sentence."""


def misfits(mine: QuestionsSettings) -> tuple[str, ...]:
    """The first two sides that must be equal and are not; none where all fit."""
    if mine.d_query != mine.d_key:
        return "d_q", "d_k"
    return ("n_k", "n_v") if mine.n_keys != mine.n_values else ()


@claim
def misfit_sentence(mine: QuestionsSettings) -> str | None:
    """What does not fit, and what must be equal; None where all fit."""
    if "d_q" in misfits(mine):
        return (
            f"Queries of width {mine.d_query} do not fit keys of width {mine.d_key}: Q and K must have the same width."
        )
    if misfits(mine):
        keys, values = counted(mine.n_keys, "key"), counted(mine.n_values, "value")
        return f"{keys} {'does' if mine.n_keys == 1 else 'do'} not fit {values}: there must be as many values as keys."
    return None


def attend(mine: QuestionsSettings) -> Tried:
    """Streams drawn with seed 0, projected to these widths, through the library's own attention."""
    import torch
    from torch import nn

    from transformer.attention import scaled_dot_product_attention
    from transformer.foundation.drawing import drawing

    with drawing(0), torch.no_grad():
        maps = [nn.Linear(mine.d_stream, width) for width in (mine.d_query, mine.d_key, mine.d_value)]
        maps.append(nn.Linear(mine.d_value, mine.d_stream))
        asking = 2 * torch.randn(mine.n_queries, mine.d_stream)
        asked = 2 * torch.randn(max(mine.n_keys, mine.n_values), mine.d_stream)
        query, key, value = maps[0](asking), maps[1](asked[: mine.n_keys]), maps[2](asked[: mine.n_values])
        if misfits(mine):
            pattern, output = _as_far_as_it_goes(query, key), None
        else:
            output, pattern = scaled_dot_product_attention(query, key, value)
        return Tried(
            query.numpy(),
            key.numpy(),
            value.numpy(),
            None if pattern is None else pattern.numpy(),
            None if output is None else output.numpy(),
            sum(weight.numel() for each in maps for weight in each.parameters()),
            "" if output is not None else _refusal(query, key, value),
        )


def _as_far_as_it_goes(query: Tensor, key: Tensor) -> Tensor | None:
    """The pattern alone, where queries and keys fit."""
    from transformer.attention import masked_softmax

    return masked_softmax(query @ key.T / key.shape[1] ** 0.5) if query.shape[1] == key.shape[1] else None


def _refusal(query: Tensor, key: Tensor, value: Tensor) -> str:
    """What PyTorch says to the product that cannot be."""
    try:
        (query @ key.T).softmax(dim=-1) @ value
    except RuntimeError as error:
        return str(error)
    return ""


def answer(model: Model) -> str:
    """The sliders, the matrices to scale, what must agree and what is free."""
    mine = session.mine(QuestionsSettings)
    places = st.columns(6, gap="medium")
    for place, (label, field, help) in zip(places, SLIDERS, strict=True):
        with place:
            bound(st.slider, label, field, help=help)
    tried = attend(mine)
    wrong, sentence = misfits(mine), misfit_sentence(mine)
    left, right = st.container(key="stacked-question").columns([1.5, 1], gap="large")
    with left:
        matrices = falk(tried.query, tried.key, tried.value, tried.pattern, tried.output)
        shapes = ", ".join(
            f"{each.name} {each.size[0]} × {each.size[1]}" for each in matrices if each.values is not None
        )
        figure = coloured(shapes_to_scale, matrices, wrong)
        said = f"To scale: {shapes}. {sentence or ''}".strip()
        wide, high = max(each.right for each in matrices) + 1.2, max(each.top for each in matrices) + 2.2
        height = int(min(560, max(300, 620 * high / wide)))
        plot(figure, key="shapes", alt=said, height=height, makers=[])
        st.caption(
            r"Each product stands in the corner of its factors: pattern $=\mathrm{softmax}(QK^\top/\sqrt{d_k})$, "
            r"output = pattern · $V$. Sides of one colour have the same length. The numbers come from random streams."
        )
    with right:
        _rules(mine, tried, sentence)
        with st.container(width=300):
            bound(st.slider, r"Stream width, $d_{\text{model}}$", "d_stream")
        st.caption(
            f"$W_Q$, $W_K$, $W_V$ map from a stream of width {mine.d_stream}, and $W_O$ back to it. With their biases "
            f"they hold {tried.weights:,} numbers. {_of(model)}"
        )
    return sentence or headline(mine, tried)


@claim
def headline(mine: QuestionsSettings, tried: Tried) -> str:
    """The shapes of the pattern and of the output, where all fit."""
    assert tried.pattern is not None
    assert tried.output is not None
    rows, columns = tried.pattern.shape
    out, wide = tried.output.shape
    meet = "query meets" if mine.n_queries == 1 else "queries meet"
    return (
        f"{mine.n_queries} {meet} {counted(mine.n_keys, 'key')}: a pattern of {rows} × {columns}, an output of "
        f"{out} × {wide}."
    )


def _rules(mine: QuestionsSettings, tried: Tried, sentence: str | None) -> None:
    """What must agree, with a mark, and what is free."""
    marks = ["✓" if fits else "✕" for fits in (mine.d_query == mine.d_key, mine.n_keys == mine.n_values)]
    relations = ["=" if mark == "✓" else "≠" for mark in marks]
    st.markdown(
        "**What must be equal**\n"
        f"- {marks[0]} The widths of Q and K: {mine.d_query} {relations[0]} {mine.d_key}. A score is their dot "
        "product.\n"
        f"- {marks[1]} The numbers of keys and values: {mine.n_keys} {relations[1]} {mine.n_values}. "
        "Each key’s weight multiplies one value.\n\n"
        "**What is free**\n"
        "- The number of queries: the output has a row for each.\n"
        "- The width of the values: the output has the same width, and $W_O$ maps it back.\n"
        "- The width of queries and keys: $d_{\\text{model}}$ / heads is usual. It keeps the work the same "
        "for any number of heads (Vaswani et al., 2017, section 3.2.2)."
    )
    if sentence:
        st.error(f"{sentence} PyTorch says: “{tried.broken}”", icon=":material/error:")


def _of(model: Model) -> str:
    """What the chosen model does."""
    config = model.config.model
    if config.recurrent:
        has = {"none": "no attention"}.get(config.attention, f"one attention ({config.attention}), as wide as its")
        return f"{plain(model.name)} has {has}{'' if config.attention == 'none' else f' state: {config.d_model}'}."
    heads = "its one head" if config.n_heads == 1 else f"each of {config.n_heads} heads"
    return f"{plain(model.name)} has $d_k = d_v$ = {config.d_model} / {config.n_heads} = {config.d_head} in {heads}."
