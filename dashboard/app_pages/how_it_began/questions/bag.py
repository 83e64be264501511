"""Question 5, why positions must be encoded: one layer of attention sees a bag, and what a bag can tell at most."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.figures.accuracy import accuracy_by_position_bars
from dashboard.figures.kit.numbers import tiny
from dashboard.models import background, no_positions
from dashboard.models.model import Model
from dashboard.models.positions import reversal
from dashboard.models.quick_training import Lesson
from dashboard.parts import waiting
from dashboard.view import session
from dashboard.view.pages import PAGES
from transformer.analysis.accuracy.bags import bag_ceiling
from transformer.analysis.accuracy.result import Accuracy

LENGTH, SYMBOLS = 8, 10
DEEPER = (
    "This bound holds for one layer. Under a causal mask two layers can do better. What a query writes in the first "
    "layer depends on how many tokens it sees, so on its position. The second layer can read that (Haviv et al., 2022)."
)
"""What the bound is not about."""
QUESTION = (3, 1, 4, 1, 5, 9, 2, 6)


def answer(model: Model) -> str:
    """The bag's ceiling and the small model that meets it; the chosen model read backwards; two orders of one bag."""
    most = bag_ceiling(LENGTH, SYMBOLS)
    left, right = st.container(key="stacked-question").columns([1.4, 1], gap="large")
    with right:
        _backwards(model)
    small = [] if session.first_look() else _small()
    with left:
        st.markdown("**One layer without positions**, token by token of the answer")
        if small:
            waiting.grown(small, lambda: _grown(most, small))
        else:
            _bars(most, None)
    with right:
        if small and all(each.done and not each.problem for each in small):
            _two_orders()
        st.caption(DEEPER)
        st.page_link(PAGES["lengths"].script, label="What positions buy", icon=":material/straighten:")
        st.page_link(PAGES["positions"].script, label="Positional encoding", icon=":material/waves:")
    return f"Without positions one layer sees only which tokens there are: at most {most.mean():.2f} of a reversal."


def _small() -> list[Lesson]:
    """The two small models, which are trained behind the page; then what is asked of them is at hand."""
    return [
        waiting.lesson(f"bag-{each}", no_positions.small(each), background.TRAININGS) for each in no_positions.POSITIONS
    ]


def _grown(most: np.ndarray, small: list[Lesson]) -> None:
    """The bars as far as the models are, and what goes on."""
    _bars(most, no_positions.so_far(small[0]))
    if not all(each.done for each in small):
        begun = any(not each.waiting for each in small)
        doing = "are being trained" if begun else "wait for another training"
        waiting.hourglass(f"Two small models {doing}, with positions and without …")


def _bars(most: np.ndarray, measured: Accuracy | None) -> None:
    """The second half of the answer, place by place: what a bag allows, and what one layer without positions has."""
    names, chance = [f"y{place}" for place in range(1, LENGTH + 1)], 1 / SYMBOLS
    mean = low = high = np.full(LENGTH, np.nan)
    said = (
        f"A bag is the tokens without their order. From it no guess is right more often than {most.mean():.2f}; "
        f"chance is {chance:.2f}."
    )
    if measured is not None:
        half = np.array(measured.groups) == "second half"
        mean, (low, high) = measured.mean[half], (edge[half] for edge in measured.interval())
        said = f"The trained layer gets {mean.mean():.2f} right. {said}"
    figure = coloured(
        accuracy_by_position_bars,
        mean,
        low,
        high,
        most,
        chance,
        names,
        sequences=None if measured is None else measured.sequences,
    )
    maker = Maker("one layer without positions, trained on the spot", no_positions.STEPS)
    plot(figure, key="bag", alt=said, height=400, makers=[maker])
    if measured is None:
        st.caption(f"{said} Open bars: the most that a bag allows.")
        return
    st.caption(
        f"{said} Open bars: the most that a bag allows. {measured.sequences:,} fresh sequences, 95 % intervals. "
        # of the few sequences that it is measured on while it trains, luck says nothing
        f"{lucky(names, mean, low, most) if measured.sequences >= no_positions.SEQUENCES else ''}"
    )
    st.caption(
        f"{names[-1]} has the ceiling {most[-1]:.2f}: before it, every symbol of the question has been said once more, "
        f"but for one. The symbol that stands in the bag an odd number of times is the answer. Counting would find it; "
        f"this layer gets {mean[-1]:.2f} right."
    )


def lucky(names: list[str], mean: np.ndarray, low: np.ndarray, most: np.ndarray) -> str:
    """Why bars stand above their ceilings, if some do: where the intervals hold the ceilings, by chance."""
    above = mean > most
    if not above.any():
        return ""
    *others, last = [name for name, over in zip(names, above, strict=True) if over]
    which = f"{', '.join(others)} and {last} stand" if others else f"{last} stands"
    far, whose = (mean - most)[above].max(), "their" if others else "its"
    said = f"{which} {'up to ' if others else ''}{far:.3f} above {whose} ceiling{'s' if others else ''}"
    if (low <= most)[above].all():
        interval = "intervals hold" if others else "interval holds"
        return f"{said}, by the luck of these sequences: {whose} {interval} the ceiling{'s' if others else ''}."
    return f"{said}, farther than {whose} interval{'s reach' if others else ' reaches'}."


def _backwards(model: Model) -> None:
    """The chosen model without its positions, with every token in sight, read from both ends."""
    st.markdown("**Permutation-equivariant**: f(x∘π) = f(x)∘π")
    if model.config.model.recurrent:
        st.caption(f"{model.name} is a recurrent network: it reads in order and needs no positional encoding.")
        return
    found = reversal(model, session.question(model), everything_seen=True)
    own = model.config.model.positions
    taken = "which has no positions" if own == "none" else f"without its {own} positions"
    st.markdown(
        f"{model.name}, {taken}, without a mask: if it reads the input backwards, all logits come out backwards "
        f"({_exactly(found.moved)}). Attention sums over a set of keys, and a set has no order."
    )


def _exactly(moved: float) -> str:
    """How well, in words."""
    return f"largest deviation {tiny(moved)}" if moved else "exactly"


def _two_orders() -> None:
    """What the small model says first, to a question and to the same bag in another order."""
    first, second = ("".join(map(str, each)) for each in (QUESTION, QUESTION[::-1]))
    lines = [f"**One bag in two orders**: what does it say first after {first}, and what after {second}?\n"]
    for positions in no_positions.POSITIONS:
        found = no_positions.turned(positions, QUESTION, QUESTION[::-1])
        marks = ["✓" if right else "✕" for right in (found.said == QUESTION[-1], found.said_other == QUESTION[0])]
        name = "without positions" if positions == "none" else f"with {positions} positions"
        lines.append(f"- {name}: {found.said} {marks[0]}, and {found.said_other} {marks[1]}")
    st.markdown("\n".join(lines))
