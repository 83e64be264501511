"""The feed-forward layer: which hidden units fire at one token, and how often each fires over many sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.whole_model.block import measured
from dashboard.app_pages.whole_model.block.figures.feed_forward import firing_histogram, unit_bars
from dashboard.app_pages.whole_model.block.picks import Place, block_name, pick_place
from dashboard.components.plot import coloured, plot
from dashboard.figures.html.step_strip import Shape
from dashboard.models.model import Model
from dashboard.parts.prose import plain
from dashboard.parts.steps import draw_code
from dashboard.view import session
from transformer.foundation.claims import claim

if TYPE_CHECKING:
    from transformer.analysis.stream.hidden_units import Fired, Firing


TOP = 12
"""Units that are named, the strongest first."""


def answer(model: Model) -> str:
    """The hidden layer of one block at one token, and over many sequences."""
    config = model.config.model
    if not config.d_ff:
        st.info(
            f"{plain(model.name)} was built without feed-forward layers: its blocks consist of attention alone. Choose "
            "another model in the sidebar.",
            icon=":material/layers:",
        )
        return without(model.name)
    place = pick_place(model)
    here = measured.fired(model, session.question(model), place.block, place.place)
    often = measured.firing(model, place.block)
    left, right = st.container(key="stacked-units").columns([1.7, 1], gap="medium")
    with left:
        _strongest(here, often, place)
    with right:
        _formula(here, len(here.out))
    _often(model, here, often, place)
    return headline(here, often, place.token)


@claim
def headline(here: Fired, often: Firing, token: str) -> str:
    """How many hidden units fire at a token, and how many never do."""
    never = (
        f"{often.never} never {_fire(often.never)} in {often.positions:,} positions"
        if often.never
        else f"every unit fires somewhere in {often.positions:,} positions"
    )
    return f"{here.firing} of {len(here.hidden)} hidden units fire at {token}; {never}."


@claim
def without(name: str) -> str:
    """What is said of a model that has none."""
    return f"{name} has no feed-forward layers, so there are no hidden units."


def _formula(here: Fired, width: int) -> None:
    units = len(here.hidden)
    st.markdown(r"$\displaystyle \mathrm{FF}(x) = W_2\,\max(0,\; W_1 x + b_1) + b_2$")
    st.markdown(
        f"W₁ makes {units} hidden numbers of {width}. ReLU, max(0, ·), sets every negative one to 0. A unit **fires** "
        f"where its number stays above 0: here {here.firing} do, and {units - here.firing} are 0. W₂ makes {width} "
        "numbers of those that fire."
    )
    hidden = Shape("hidden", (("d_ff", units),))
    draw_code(
        (Shape("x", (("d_model", width),)), Shape("W₁", (("d_ff", units), ("d_model", width))), hidden),
        ("transformer.blocks:FeedForward.forward", 'trace("hidden"'),
    )


def _strongest(here: Fired, often: Firing, place: Place) -> None:
    order = np.argsort(-here.hidden, kind="stable")[: min(TOP, here.firing)]
    if not len(order):
        st.info(f"No hidden unit fires at {plain(place.token)}: the layer writes its bias b₂ alone.")
        return
    st.markdown(f"**The strongest units** at {plain(place.token)}, and how often each fires")
    said = strongest_sentence(here, often)
    figure = coloured(unit_bars, order, here.hidden[order], often.shares[order])
    plot(figure, key="units", alt=said, height=70 + 26 * len(order))
    st.caption(said)


@claim
def strongest_sentence(here: Fired, often: Firing) -> str:
    """Which unit is the strongest at a token, how often it fires, and which writes the longest vector there."""
    first, longest = int(here.hidden.argmax()), int(here.lengths.argmax())
    writes = "It also writes" if longest == first else f"Unit {longest} writes"
    return (
        f"Unit {first} is the strongest here, with {here.hidden[first]:.2f}. It fires at {often.shares[first]:.0%} of "
        f"all positions. {writes} the longest vector, of length {here.lengths[longest]:.2f}."
    )


def _often(model: Model, here: Fired, often: Firing, place: Place) -> None:
    units, shares = len(here.hidden), often.shares
    kind = "fresh sequences" if model.task.lawful else "passages that were held out"
    where, over = (
        block_name(model.config.model, place.block),
        f"{often.positions:,} positions of {often.sequences} {kind}",
    )
    st.markdown(f"**How often the units of {where} fire**, over {over}")
    dead = " Such a unit adds nothing to the output and gets no gradient from these sequences." if often.never else ""
    said = (
        f"On average a unit fires at {shares.mean():.0%} of positions. Units that fire everywhere: "
        f"{int((shares == 1).sum())} of {units}. Units that fire nowhere: {often.never}.{dead}"
    )
    plot(coloured(firing_histogram, shares), key="firing", alt=said, height=260)
    st.caption(said)


def _fire(count: int) -> str:
    return "fires" if count == 1 else "fire"
