"""Question 3, are the dense layers of different blocks the same: one shape, weights of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.questions.figures.dense_layers import MOST_SHOWN, cosine_heatmap, weight_heatmaps
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.numbers import signed, tiny
from dashboard.models.cache import cached
from dashboard.models.model import Model
from dashboard.parts.prose import plain
from dashboard.view import session
from transformer.foundation.claims import claim

if TYPE_CHECKING:
    from transformer.analysis.stream.dense_layers import Feeds
    from transformer.tasks import Question


MOST_PANELS = 4
SAME = 1e-6
"""Cosines nearer to 1 than this are those of the same weights, but for rounding."""
OTHER = 0.5
"""A smaller mean cosine between what two layers say, and they are other functions."""


def answer(model: Model) -> str:
    """The weights beside each other, their cosines before and after training, and the check across positions."""
    if model.config.model.recurrent or not model.config.model.d_ff:
        kind = "is a recurrent network" if model.config.model.recurrent else "was built without them"
        st.info(
            f"{plain(model.name)} {kind}. Choose a model with feed-forward layers in the sidebar, or train one.",
            icon=":material/layers:",
        )
        return headline(model.name, None)
    found = feeds(model)
    names = [_short(name, found) for name in found.names]
    left, right = st.container(key="stacked-question").columns([1.6, 1], gap="large")
    with left:
        _weights(found, names)
    with right:
        _likeness(model, found, names)
    moved = permuted(model, session.question(model))
    st.markdown(
        f"**All positions share one layer**: if its input positions are permuted, its outputs are permuted in the same "
        f"way ({'exactly' if moved == 0 else f'largest deviation {tiny(moved)}'}). Each position goes through the same "
        "network, alone."
    )
    return headline(model.name, found.cosine)


@claim
def headline(name: str, cosine: np.ndarray | None) -> str:
    """How like one another the dense layers of a model are, by the cosine of each two; None where it has none."""
    if cosine is None:
        return f"{name} has no dense layers to compare."
    if len(cosine) == 1:
        return "There is one dense layer, and every position uses the same weights."
    begin = f"The {len(cosine)} dense layers have the same shape and"
    if np.allclose(cosine, 1, atol=SAME):
        return f"{begin} the same weights."
    if len(cosine) == 2:
        return f"{begin} different weights: their cosine is {signed(cosine[0, 1])}."
    return f"{begin} different weights: every cosine of two is within {_most(cosine):.2f} of 0."


def _short(name: str, found: Feeds) -> str:
    stack, _, layer = name.partition(".")
    several = len({each.partition(".")[0] for each in found.names}) > 1
    return f"{stack[0]}{layer}" if several else layer


def _most(cosine: np.ndarray) -> float:
    """The greatest cosine of two different layers, whatever its sign; 0 of a single one."""
    return float(np.abs(cosine - np.eye(len(cosine)))[~np.eye(len(cosine), dtype=bool)].max(initial=0.0))


def _weights(found: Feeds, names: list[str]) -> None:
    d_ff, d_model = found.up[0].shape
    st.markdown(f"**$W_1$ of each block**, {d_ff} × {d_model}: the same cells of each, with other numbers")
    shown = names[:MOST_PANELS]
    titles = [f"block {name}" for name in shown]
    spread = [float(each.std()) for each in found.up]
    each = ", ".join(f"block {name} {value:.3f}" for name, value in zip(names, spread, strict=True))
    plot(
        coloured(weight_heatmaps, found.up[:MOST_PANELS], titles),
        key="feeds",
        alt=f"Spread of the weights: {each}.",
        height=400,
    )
    part = f"The first {MOST_SHOWN} hidden units and dimensions" if max(d_ff, d_model) > MOST_SHOWN else "All of it"
    more = f" of the first {MOST_PANELS} of {len(names)} blocks" if len(names) > MOST_PANELS else ""
    both = " e: encoder, d: decoder." if any(name[0] in "ed" for name in names) else ""
    st.caption(f"{part}{more}. Spread of $W_1$: {each} (standard deviation).{both}")


def _likeness(model: Model, found: Feeds, names: list[str]) -> None:
    """Cosines now and at the first step, of weights and of what is said."""
    if len(names) == 1:
        st.info("This model has one block, so there is nothing to compare.")
        return
    st.markdown("**Cosine of all weights**, block with block")
    chance = found.weights**-0.5
    said = f"The cosine of two blocks is at most {_most(found.cosine):.3f} from 0"
    plot(coloured(cosine_heatmap, found.cosine, names), key="feeds-cosine", alt=f"{said}.", height=250)
    lines = [f"{said}. Two lists of {found.weights:,} random numbers stay within about {2 * chance:.3f}."]
    before = _untrained(model)
    if before is not None:
        lines.append(f"Before training it was {_most(before.cosine):.3f}.")
    other = ": they are not one function with its hidden units in another order" if _most(found.said) < OTHER else ""
    lines.append(f"On the same inputs their outputs have a mean cosine of at most {_most(found.said):.2f}{other}.")
    st.caption(" ".join(lines))


def _untrained(model: Model) -> Feeds | None:
    """The same model before its first step, if that is kept."""
    choice = session.choices()[model.name]
    first = choice.snapshots[0]
    return None if first == model.step else feeds(Model.of(choice, first))


# --- 3: the dense layers


@cached(32)
def feeds(model: Model) -> Feeds:
    """Its feed-forward layers beside each other. Raises ConfigError where there are none."""
    from transformer.analysis.stream.dense_layers import compare_feeds

    return compare_feeds(model.transformer(), model.task, model.task.example)


@cached(32)
def permuted(model: Model, question: Question) -> float:
    """How far feeding permuted positions is from permuting what was fed, at most."""
    from transformer.analysis.stream.dense_layers import permuted

    return permuted(model.transformer(), model.task, question)
