"""One step further in an encoding: the matrix that takes position p to p + k, and the pairs of dimensions it turns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.positions.positions.encoding import Shown
from dashboard.app_pages.positions.positions.figures import rotation
from dashboard.app_pages.positions.positions.settings import MOST_WIDE
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.numbers import tiny
from dashboard.models import positions
from dashboard.parts.widgets import bound_number
from dashboard.server.streamlit_private import DeltaGenerator
from transformer.foundation.claims import claim
from transformer.foundation.words import counted

if TYPE_CHECKING:
    from transformer.analysis.encodings import FittedShift


MOST_DRAWN = 32
"""Dimensions of the matrix that are drawn."""
MOST_CLOCKS = 4


def step(shown: Shown, cursor: int, chosen: Sequence[int]) -> None:
    """The section: what it takes to get from a position to the one k further; nothing where there is only one."""
    if len(shown.values) < 2:
        return
    st.header("One step further", anchor=False)
    left, right = st.container(key="step-row").columns([1, 1.3], gap="large")
    with right:
        steps = bound_number("Step k, in positions", "shift", 1, 1, len(shown.values) - 1)
    if shown.base is None:
        _fitted(shown, steps, left, right)
        return
    with left:
        _turned(shown, steps, shown.base)
    with right:
        _clocks(shown, steps, shown.base, cursor, chosen)


PAIRING = (
    " A pair is two neighbouring dimensions, as in the paper. Llama pairs the first half of the "
    "dimensions with the second."
)


def _turned(shown: Shown, steps: int, base: int) -> None:
    """The matrix that follows from the formula, and by how much it misses."""
    from transformer.analysis.encodings import deviation, rotary_scores, shift, spread

    length, width = shown.values.shape
    matrix = shift(shown.name, steps, width, base)
    missed = deviation(shown.values, matrix, steps)
    if shown.name == "rotary":
        st.markdown(f"**One rotation, the same for every p** · $q_{{p+{steps}}} = R_{{{steps}}}\\,q_p$")
        said = rotated_sentence(steps, length - steps, missed, spread(rotary_scores(length, width, base)))
    else:
        st.markdown(f"**One linear map, the same for every p** · $PE_{{p+{steps}}} = M_{{{steps}}}\\,PE_p$")
        said = turned_sentence(steps, length - steps, missed)
    _matrix(matrix, f"{said} In float64.", high=1.0, pairs=True)


def _over(places: int) -> str:
    return f"Over all {places} positions p" if places > 1 else "At the only position p there is"


@claim
def turned_sentence(steps: int, places: int, missed: float) -> str:
    """By how much the formula's matrix misses the step of a table, at so many places."""
    return (
        f"{_over(places)}, the greatest |PE(p+{steps}) − M · PE(p)| is {tiny(missed)}. M turns each pair by its own "
        "angle."
    )


@claim
def rotated_sentence(steps: int, places: int, missed: float, apart: float) -> str:
    """The same of queries and keys that are turned, and how far scores at the same distance lie `apart`."""
    return (
        f"{_over(places)}, R takes the pair (1, 0) turned for p to the pair turned for p + {steps}; the largest error "
        f"is {tiny(missed)}. So the score of a query and a key depends on their distance only: for a random pair at "
        f"every two positions, scores at the same distance differ by at most {tiny(apart)}."
    )


def _matrix(matrix: np.ndarray, said: str, *, high: float | None = None, pairs: bool = False) -> None:
    part = matrix[:MOST_DRAWN, :MOST_DRAWN]
    plot(coloured(rotation.shift_heatmap, part, high=high, pairs=pairs), key="step", alt=said, height=380)
    cut = f" Drawn are the first {len(part)} of {len(matrix)} dimensions." if len(part) < len(matrix) else ""
    st.caption(f"{said}{cut}")


def _clocks(shown: Shown, steps: int, base: int, cursor: int, chosen: Sequence[int]) -> None:
    """The chosen pairs at the cursor and a step further."""
    width = shown.values.shape[1]
    pairs = sorted({dimension // 2 for dimension in chosen})[:MOST_CLOCKS]
    each = [1 / base ** (2 * pair / width) for pair in pairs]
    names = [f"pair {pair}<br>{angle(steps * turn)}" for pair, turn in zip(pairs, each, strict=True)]
    clocks = [rotation.Clock(name, (cursor - 1) * turn, steps * turn) for name, turn in zip(names, each, strict=True)]
    turned = ", ".join(f"pair {pair} turns by {angle(steps * turn)}" for pair, turn in zip(pairs, each, strict=True))
    sentence = f"From position {cursor} to {cursor + steps}, {turned}."
    whose = "Pairs of a query or a key, as hands" if shown.name == "rotary" else "Pairs of dimensions, as hands"
    st.markdown(f"**{whose}** · those of the dimensions chosen above")
    figure = coloured(rotation.turning_circles, clocks, cursor, cursor + steps)
    plot(figure, key="pairs", alt=sentence, height=270)
    pairing = PAIRING if shown.name == "rotary" else ""
    st.caption(f"{sentence} Right is the cosine, up is the sine. The arc leaves out whole turns.{pairing}")


def angle(radians: float) -> str:
    """In degrees with three digits: 57.3°, 0.0102°, 1,146°."""
    degrees = math.degrees(radians)
    digits = max(0, 2 - math.floor(math.log10(degrees)))
    return f"{degrees:,.{digits}f}°"


def _fitted(shown: Shown, steps: int, left: DeltaGenerator, right: DeltaGenerator) -> None:
    """The linear map that comes nearest, and whether that says anything."""
    width = shown.values.shape[1]
    if width > MOST_WIDE:
        left.caption(f"A linear map of {width} dimensions takes too long to fit. The limit is {MOST_WIDE}.")
        return
    found = positions.fitted(shown.model, shown.name, len(shown.values), steps)
    said = fitted_sentence(steps, found)
    with left:
        st.markdown("**The nearest linear map** · least squares")
        _matrix(found.matrix, said)
    with right:
        fitted, unseen = st.columns(2)
        fitted.metric("Missed, fitted steps", f"{found.missed:.3f}")
        unseen.metric("Missed, unseen steps", "–" if math.isnan(found.unseen) else f"{found.unseen:.3f}")
        st.caption(
            "‖PE(p+k) − M · PE(p)‖ as a share of ‖PE(p+k)‖, over all p: 0 is exact, 1 is no better than "
            "predicting zero. "
            "For the unseen steps, the map is fitted to a random half of the steps and tested on the other, both ways."
        )
        st.markdown(_judged(found, width))


@claim
def fitted_sentence(steps: int, found: FittedShift) -> str:
    """What share of a step the nearest linear map misses."""
    fitted_to = counted(found.fitted, "step")
    return f"The linear map nearest to PE(p+{steps}), fitted to {fitted_to}, misses {found.missed:.2f} of it."


@claim
def _judged(found: FittedShift, width: int) -> str:
    """What the two shares mean together."""
    free = (
        f"It was fitted to {counted(found.fitted, 'step')} in {width} dimensions. "
        "A linear map can always fit so few independent vectors exactly, so the first number proves nothing. "
        if found.fitted <= width
        else ""
    )
    if math.isnan(found.unseen):
        return f"{free}There is only one step, so none is left for a test."
    if found.unseen < 0.1:
        return (
            f"{free}The map also works for steps that it was not fitted to: a step is nearly the same linear "
            "map for every p."
        )
    if found.unseen < 0.9:
        return f"{free}The map works in part for steps that it was not fitted to."
    return f"{free}The map does not work for steps that it was not fitted to."
