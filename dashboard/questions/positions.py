"""Why must positions be encoded? Attention sees a bag: the check on this model, and what a bag can tell at most."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard import bags, encoded, session
from dashboard.attention import palette
from dashboard.components.origin import Maker
from dashboard.components.plot import plot
from dashboard.figures.accuracy import accuracy_by_position_bars
from dashboard.models import Model
from dashboard.waves import tiny
from transformer.analysis.bags import bag_ceiling

LENGTH, SYMBOLS = 8, 10
QUESTION = (3, 1, 4, 1, 5, 9, 2, 6)


def answer(model: Model) -> str:
    """The bag's ceiling and the small model that meets it; the chosen model read backwards; two orders of one bag."""
    most = bag_ceiling(LENGTH, SYMBOLS)
    left, right = st.container(key="questions-row").columns([1.4, 1], gap="large")
    with left:
        _bars(most)
    with right:
        _backwards(model)
        _two_orders()
        st.page_link("app_pages/lengths.py", label="What positions buy", icon=":material/straighten:")
        st.page_link("app_pages/positions.py", label="Positional encoding", icon=":material/waves:")
    return f"Without positions attention sees a bag: it tells at most {most.mean():.2f} of a reversal."


def _bars(most: np.ndarray) -> None:
    """The second half of the answer, place by place, of one layer without positions."""
    st.markdown("**One layer without positions**, place by place of the answer")
    if session.first_look():
        st.caption(":material/hourglass_top: A model without positions is about to be trained …")
        return
    measured = bags.accuracy()
    half = np.array(measured.groups) == "second half"
    low, high = measured.interval()
    mean = measured.mean[half].mean()
    said = (
        f"It has {mean:.2f} right; no guess from a bag has more than {most.mean():.2f}, chance is "
        f"{measured.chance:.2f}."
    )
    figure = accuracy_by_position_bars(
        measured.mean[half],
        low[half],
        high[half],
        most,
        measured.chance,
        [name for name, chosen in zip(measured.names, half, strict=True) if chosen],
        sequences=measured.sequences,
        palette=palette(),
    )
    maker = Maker("one layer without positions, trained on the spot", bags.STEPS)
    plot(figure, key="bag", alt=said, height=400, makers=[maker])
    st.caption(
        f"{said} Open bars: the most that a bag allows. {measured.sequences:,} fresh sequences, 95 % intervals. "
        f"The last symbol is the one that a bag could tell for sure, by counting: this layer has "
        f"{measured.mean[half][-1]:.2f} of it."
    )


def _backwards(model: Model) -> None:
    """The chosen model without its positions, with every token in sight, read from both ends."""
    st.markdown("**Permutation-equivariant**: f(x∘π) = f(x)∘π")
    if model.config.model.recurrent:
        st.caption(f"{model.name} is a recurrent network: it reads in order, and needs no positions.")
        return
    found = encoded.reversal(model, session.question(model), everything_seen=True)
    own = model.config.model.positions
    taken = "which has none" if own == "none" else f"its {own} positions taken away"
    st.markdown(
        f"{model.name}, {taken}, with every token in sight: read the input backwards, and all logits come out "
        f"backwards, to within {tiny(found.moved)}. Attention sums over a set of keys, and a set has no order."
    )


def _two_orders() -> None:
    """What the small model says first, to a question and to the same bag in another order."""
    if session.first_look():
        return
    first, second = ("".join(map(str, each)) for each in (QUESTION, QUESTION[::-1]))
    lines = [f"**Two orders of one bag**: which symbol answers {first} first, and which {second}?\n"]
    for positions in ("none", "learned"):
        found = bags.turned(positions, QUESTION, QUESTION[::-1])
        marks = ["✓" if right else "✗" for right in (found.said == QUESTION[-1], found.said_other == QUESTION[0])]
        name = "without positions" if positions == "none" else f"with {positions} positions"
        lines.append(f"- {name}: {found.said} {marks[0]}, and {found.said_other} {marks[1]}")
    st.markdown("\n".join(lines))
