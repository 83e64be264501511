"""What the missing scale costs, width by width: a shipped measurement, for the page of that one mistake."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.mistakes.figures.by_width import by_width_curves
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.models.scaling import EARLY, scaling
from dashboard.parts.prose import sentence
from transformer.config import RunConfig, TaskConfig
from transformer.experiments.scaling import Scaling, ScalingError
from transformer.foundation.words import listed

MISTAKE = "scale-missing"
"""The mistake that was measured."""
BEHIND = 0.05
"""How much less often right the mean has to be for a width to be named."""


def show() -> None:
    """Accuracy and what softmax lets through, with and without the scale, and what was found in a sentence."""
    st.markdown("**Is it always silent?** The same code in models of other widths")
    try:
        found = scaling()
    except ScalingError as error:
        st.caption(sentence(str(error)))
        return
    rate, slow = found.rates[0], found.rates[-1]
    right, wrong = (found.accuracies(rate, EARLY, scaled=scaled) for scaled in (True, False))
    makers = [Maker(f"{found.planned} models of {len(found.widths)} widths", found.steps[-1])]
    said, through = accuracy_sentence(found, rate), gradient_sentence(found)
    left, side = st.container(key="stacked-widths").columns(2, gap="medium")
    with left:
        figure = coloured(
            by_width_curves,
            found.widths,
            right,
            wrong,
            title=f"right after {EARLY} steps",
            chance=RunConfig(task=TaskConfig(length=found.length)).build_task().chance,
        )
        plot(figure, key="mistake-widths", alt=said, height=320, makers=makers)
        st.caption(said)
    with side:
        gradients = [found.gradients(scaled=scaled) for scaled in (True, False)]
        figure = coloured(by_width_curves, found.widths, *gradients, title="gradient that is left")
        plot(figure, key="mistake-gradients", alt=through, height=320, makers=makers)
        st.caption(through)
    st.caption(
        f"{len(found.seeds)} seeds for each point, {found.layers} layers of {found.heads} heads, learned positions, "
        f"sequences of {found.length} digits, a batch of {found.batch}. {slower_sentence(found, slow)} The gradient is "
        "the trace of softmax’s Jacobian, $1 - \\sum p^2$, as a share of that of an even look: 0 where all attention "
        "lies on one key."
    )


def behind(found: Scaling, rate: float, step: int = EARLY) -> list[int]:
    """The widths at which every seed without the scale is right less often than every seed with it, and by BEHIND."""
    right, wrong = (found.accuracies(rate, step, scaled=scaled) for scaled in (True, False))
    apart = (wrong.max(axis=1) < right.min(axis=1)) & (right.mean(axis=1) - wrong.mean(axis=1) >= BEHIND)
    return [width for width, clear in zip(found.widths, apart, strict=True) if clear]


def accuracy_sentence(found: Scaling, rate: float, step: int = EARLY) -> str:
    """At which widths the scale matters after a step, and by how much."""
    means = [found.accuracies(rate, step, scaled=scaled).mean(axis=1) for scaled in (True, False)]
    clear = behind(found, rate, step)
    opening = f"After {step} steps at a rate of {rate:g}"
    if not clear:
        return f"{opening}, no width shows a difference that holds on every seed."
    each = [
        f"{wrong:.2f} and not {right:.2f} at width {width}"
        for width, right, wrong in zip(found.widths, *means, strict=True)
        if width in clear
    ]
    rest = [str(width) for width in found.widths if width not in clear]
    others = f" At {listed(rest)} there is no such difference." if rest else ""
    return f"{opening}, models without the scale are right less often on every seed: {listed(each)}.{others}"


def slower_sentence(found: Scaling, rate: float) -> str:
    """The same at the smallest rate, after as many steps and at the end."""
    last = found.steps[-1]
    wide = found.widths[-1]
    parts = [
        f"{found.accuracies(rate, step, scaled=False)[-1].mean():.2f} and "
        f"{found.accuracies(rate, step, scaled=True)[-1].mean():.2f} after {step} steps"
        for step in (EARLY, last)
    ]
    return f"At a rate of {rate:g}, width {wide} reaches {listed(parts)}, without and with the scale."


def gradient_sentence(found: Scaling) -> str:
    """How much gradient softmax lets through before the first step, in the narrowest models and the widest."""
    right, wrong = (found.gradients(scaled=scaled).mean(axis=1) for scaled in (True, False))
    moves = "falls" if (np.diff(wrong) < 0).all() else "goes"
    return (
        f"Before the first step, what softmax lets through {moves} from {wrong[0]:.2f} at width {found.widths[0]} to "
        f"{wrong[-1]:.2f} at {found.widths[-1]} without the scale. With it, it is {right[0]:.2f} and {right[-1]:.2f}."
    )
