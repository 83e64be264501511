"""What a decoder trained with teacher forcing is fed: the true corner or its own, in numbers and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.corners import figures
from dashboard.app_pages.learn.corners.figures import Feeding
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.models.cache import cached
from dashboard.models.walks.corners import ROLLED, View
from dashboard.parts import waiting
from transformer.corners import FRESH_STREAM, CornerConfig, every_walk, floor, walks
from transformer.foundation.claims import claim

if TYPE_CHECKING:
    from transformer.recurrent.corners import CornerStep


QUESTION = "Teacher forcing: does the decoder read the true corner, or its own?"
"""The title until something is measured."""
FRESH = 512
"""Walks on which its errors are measured: those of the page's curves."""


@dataclass(frozen=True, eq=False)
class Fed:
    """What a model says of the walks that are drawn, and its errors on fresh ones, fed either way."""

    free: np.ndarray
    """float [walk, 2, 2], each prediction read by the next step."""
    helped: np.ndarray
    """The same, the true corner read."""
    free_errors: np.ndarray
    """float [corner]: root of the mean squared distance on FRESH walks, of the first and of the second."""
    helped_errors: np.ndarray


@cached(64)
def _fed(config: CornerConfig, number: int, _step: CornerStep) -> Fed:
    """With the weights of a step, of which `number` is told apart."""
    from transformer.recurrent.corners import build_walker, say_corners

    model = build_walker(config)
    model.load_state_dict(_step.weights)
    drawn, fresh = (
        every_walk(config.most, config.noise),
        walks(np.random.default_rng([config.seed, FRESH_STREAM]), FRESH, config.most, config.noise),
    )
    model.eval()
    free, helped = (say_corners(model, drawn, helped=each) for each in (False, True))
    errors = [
        np.sqrt(((say_corners(model, fresh, helped=each) - fresh.target) ** 2).sum(axis=-1).mean(axis=0))
        for each in (False, True)
    ]
    return Fed(free, helped, *errors)


def fed(view: View) -> Fed | None:
    """The model in view; None before it has weights, and where its states are too wide for them to be kept."""
    if view.step is None or not view.step.weights:
        return None
    return _fed(view.config, view.step.step, view.step)


@claim
def headline(found: Fed) -> str:
    """By how much the second prediction misses, fed either way."""
    return (
        f"The next prediction is {found.helped_errors[1]:.2f} off after the true corner, and "
        f"{found.free_errors[1]:.2f} after its own."
    )


def pictures(view: View, found: Fed | None, makers: list[Maker]) -> None:
    """The two ways of feeding, in one walk; and the errors on fresh ones."""
    if found is None:
        if view.config.d_model > ROLLED:
            wide = view.config.d_model
            st.caption(f"A state has {wide} numbers here. Up to {ROLLED} can be shown: choose a smaller width.")
        else:
            waiting.hourglass("A GRU is being trained with teacher forcing …")
        return
    corners, walk = [view.given + 1, view.given + 2], view.walk
    last, true = view.walks.source[walk, view.given - 1], view.walks.target[walk]
    helped, free = found.helped[walk], found.free[walk]
    ways = [
        Feeding("Teacher forcing: reads the true corner", np.stack([last, true[0]]), helped, true, helped=True),
        Feeding("Free-running: reads its own", np.stack([last, free[0]]), free, true, helped=False),
    ]
    left, right = st.container(key="stacked-fed").columns([2.3, 1], gap="medium")
    with left:
        said = fed_words(corners, ways)
        diagram = coloured(figures.feeding_diagram, ways, corners=corners)
        plot(diagram, key="corners-fed", alt=said, height=290, makers=makers)
        st.caption(said)
    with right:
        st.markdown(f"**The errors**, on {FRESH} fresh walks")
        said, noise = growth_words(corners, found), floor(view.config.noise)
        bars = coloured(figures.growth_bars, found.free_errors, found.helped_errors, floor=noise, corners=corners)
        plot(bars, key="corners-growth", alt=said, height=230, makers=makers)
        st.caption(said)


def fed_words(corners: list[int], ways: list[Feeding]) -> str:
    """What the diagram shows, of one walk."""
    helped, free = ways
    first, second = corners
    return (
        f"Both begin alike: the decoder reads corner {first - 1} and predicts corner {first}, {free.off[0]:.2f} off. "
        f"Then teacher forcing lets it read the true corner {first}, and corner {second} is {helped.off[1]:.2f} off. "
        f"Free-running, it reads its own corner {first}, and corner {second} is {free.off[1]:.2f} off."
    )


@claim
def growth_words(corners: list[int], found: Fed) -> str:
    """What becomes of the error from the first predicted corner to the second."""
    helped, free = (round(float(errors[1]), 2) for errors in (found.helped_errors, found.free_errors))
    more = round(free - helped, 2)  # as the digits that are shown have it
    verdict = "Both are as far off" if not more else f"Free-running {'costs' if more > 0 else 'saves'} {abs(more):.2f}"
    return (
        f"In training this GRU read true corners only (p = 1). Corner {corners[1]} is {helped:.2f} off when it "
        f"reads the true corner {corners[0]}, and {free:.2f} off when it reads its own. {verdict}."
    )
