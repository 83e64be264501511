"""Question 5, why positions must be encoded: attention sees a bag, and what a bag can tell at most."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.questions.figures.bag import Bars, Panel, bag_bars, two_orders_heatmap
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.numbers import tiny
from dashboard.models import background, no_positions
from dashboard.models.model import Model
from dashboard.models.on_the_spot.quick_training import Lesson
from dashboard.models.positions import reversal, two_orders
from dashboard.parts import waiting
from dashboard.parts.prose import plain, with_positions
from dashboard.view import session
from dashboard.view.pages import PAGES
from transformer.analysis.accuracy.bags import bag_ceiling
from transformer.analysis.accuracy.result import Accuracy
from transformer.foundation.claims import claim

LENGTH, SYMBOLS = 8, 10
DEEPER = (
    "This bound holds for one layer. Under a causal mask two layers can do better. What a query writes in the first "
    "layer depends on how many tokens it sees, so on its position. The second layer can read that (Haviv et al., 2022)."
)
"""What the bound is not about."""
QUESTION = (3, 1, 4, 1, 5, 9, 2, 6)
SHOWN = 6
"""Numbers of the attention output that are shown."""
LONG_ORDER = 22
"""Letters of an order that is written in full."""
ROUNDING = 1e-9
"""A difference below this is rounding: the numbers are computed in float64."""


def answer(model: Model) -> str:
    """Two orders of the same tokens; then a bag's ceiling and two small models; the chosen model read backwards."""
    _two_orders(model)
    most = bag_ceiling(LENGTH, SYMBOLS)
    small = {} if session.first_look() else _small()
    left, right = st.container(key="stacked-question").columns([1.6, 1], gap="large")
    with left:
        if small:
            waiting.grown(list(small.values()), lambda: _grown(most, small))
        else:
            _bars(
                most,
                {},
                f":material/hourglass_top: they are about to be trained, for at most {no_positions.STEPS} steps each …",
            )
    with right:
        if small and all(each.done and not each.problem for each in small.values()):
            _said_first()
        _backwards(model)
        st.caption(DEEPER)
        st.page_link(PAGES["lengths"].script, label="What positions buy", icon=":material/straighten:")
        st.page_link(PAGES["positions"].script, label="Positional encoding", icon=":material/waves:")
    return headline(float(most.mean()))


@claim
def headline(most: float) -> str:
    """How much of a reversal one layer can get right that is told no position."""
    return f"Without positions one layer sees only which tokens there are: at most {most:.2f} of a reversal."


# --- two orders of the same tokens


def _two_orders(model: Model) -> None:
    """The first attention's output at the last token, without the model's positions and with them."""
    if model.config.model.recurrent:
        st.caption(f"{plain(model.name)} is a recurrent network: it reads in order and needs no positional encoding.")
        return
    found, names = two_orders(model, session.question(model))
    turned = (*names[-2::-1], names[-1])
    if turned == names:
        st.caption("These tokens are the same from back to front. Type others, and the two orders differ.")
        return
    own, all_of_them = model.config.model.encoding, found.untold.shape[1]
    untold = own.told == "nowhere"
    change = found.untold[0] if untold else found.told[1] - found.told[0]
    changed = np.argsort(-np.abs(change), kind="stable")[: max(1, min(SHOWN, int((np.abs(change) > ROUNDING).sum())))]
    most = np.sort(changed)
    panels = [Panel(_titled("without positions", found.moved[0]), found.untold[:, most])]
    if not untold:
        panels.append(Panel(_titled(f"with its {own.title} positions", found.moved[1]), found.told[:, most]))
    st.markdown(
        f"**The same tokens in two orders**: what the first attention gives the last token, '{plain(names[-1])}'"
    )
    said = order_sentence(all_of_them, *found.moved, told=not untold)
    which = "" if untold else " that change most"
    figure = coloured(
        two_orders_heatmap,
        panels,
        orders=(_written(names), _written(turned)),
        numbers=(most + 1).tolist(),
        title=f"the {len(most)} of {all_of_them} numbers{which}",
    )
    plot(figure, key="two-orders", alt=said, height=160)
    st.markdown(said)


def _titled(name: str, moved: float) -> str:
    """A panel's name, and whether its two rows are the same."""
    return f"{name}: {'the same' if moved < ROUNDING else 'not the same'}"


def _written(names: tuple[str, ...]) -> str:
    """An order on one line; of a long one its first and its last tokens."""
    whole = " ".join(names)
    return whole if len(whole) <= LONG_ORDER else f"{names[0]} … {names[-2]} {names[-1]}"


@claim
def order_sentence(numbers: int, without: float, own: float, *, told: bool) -> str:
    """By how much the two rows differ at most, without positions and with the model's own if it is `told` any."""
    who = f"all {numbers} numbers are" if numbers > 1 else "its one number is"
    they = "they differ" if numbers > 1 else "it differs"
    same = "exactly" if not without else f"but for rounding ({tiny(without)})"
    said = f"Without positions {who} the same, {same}: a sum has no order."
    if without >= ROUNDING:
        said = f"Without positions {they} by up to {tiny(without)}."
    if not told:
        return said
    far = f"{own:.2f}"
    return f"{said} With positions {they} by {'less than 0.005' if far == '0.00' else f'up to {far}'}."


# --- two small models


def _small() -> dict[str, Lesson]:
    """The two small models, trained behind the page: first the one that is soon done."""
    return {
        each: waiting.lesson(f"bag-{each}", no_positions.small(each), background.TRAININGS)
        for each in reversed(no_positions.POSITIONS)
    }


def _grown(most: np.ndarray, small: dict[str, Lesson]) -> None:
    """The bars as far as the models are."""
    _bars(most, {each: no_positions.so_far(lesson) for each, lesson in small.items()}, _under_way(small))


def _under_way(small: dict[str, Lesson]) -> str:
    """What goes on; empty when nothing does."""
    if all(each.done for each in small.values()):
        return ""
    if all(each.waiting or each.done for each in small.values()):
        return ":material/hourglass_top: they wait for another training …"
    going = [f"{with_positions(name)} step {len(each.steps)}" for name, each in small.items() if not each.done]
    most = f"of at most {no_positions.STEPS}{' each' if len(going) > 1 else ''}"
    return f":material/hourglass_top: being trained now, {' and '.join(going)}, {most}: the bars grow with it …"


def _bars(most: np.ndarray, measured: dict[str, Accuracy | None], under_way: str = "") -> None:
    """The answer, token by token: what a bag allows, and what one layer without positions has, and one with them."""
    st.markdown(f"**Two models of one layer**, {under_way or 'trained here: how often is each token right?'}")
    names, chance = [f"y{place}" for place in range(1, LENGTH + 1)], 1 / SYMBOLS
    bars, shares = [], {}
    for positions in no_positions.POSITIONS:
        mean = low = high = np.full(LENGTH, np.nan)
        found = measured.get(positions)
        if found is not None:
            answer = np.array(found.groups) == found.groups[-1]
            mean, (low, high) = found.mean[answer], (edge[answer] for edge in found.interval())
            shares[positions] = mean
        bars.append(Bars(with_positions(positions), mean, low, high))
    said = (
        f"A bag is the tokens without their order. Its ceiling is what the best guess from it gets right: "
        f"{most.mean():.2f} on average; chance is {chance:.2f}."
    )
    if shares:
        right = ", ".join(f"{mean.mean():.2f} {with_positions(each)}" for each, mean in shares.items())
        said += f" Right on average: {right}."
    figure = coloured(bag_bars, bars, ceiling=most, chance=chance, names=names)
    makers = [Maker("two models of one layer, trained on the spot", no_positions.STEPS)]
    plot(figure, key="bag", alt=said, height=360, makers=makers)
    st.caption(said)
    without = measured.get("none")
    if without is None:
        return
    st.caption(
        f"{names[-1]} is the last token, and its ceiling is {most[-1]:.2f}: the symbol that stands in the bag an odd "
        f"number of times is the answer. Counting would find it; without positions this layer gets "
        f"{shares['none'][-1]:.2f} right."
    )
    luck = lucky(names, shares["none"], bars[0].low, most) if without.sequences >= no_positions.SEQUENCES else ""
    # of the few sequences that it is measured on while it trains, luck says nothing
    st.caption(f"{without.sequences:,} fresh sequences, 95 % intervals. {luck}")


@claim
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


def _said_first() -> None:
    """What the small models say first, to a question and to the same bag in another order."""
    first, second = ("".join(map(str, each)) for each in (QUESTION, QUESTION[::-1]))
    lines = [f"**One bag in two orders**: what do they say first after {first}, and what after {second}?\n"]
    for positions in no_positions.POSITIONS:
        found = no_positions.turned(positions, QUESTION, QUESTION[::-1])
        marks = ["✓" if right else "✕" for right in (found.said == QUESTION[-1], found.said_other == QUESTION[0])]
        lines.append(f"- {with_positions(positions)}: {found.said} {marks[0]}, and {found.said_other} {marks[1]}")
    st.markdown("\n".join(lines))


# --- the whole model, read backwards


def _backwards(model: Model) -> None:
    """The chosen model without its positions, with every token in sight, read from both ends."""
    if model.config.model.recurrent:
        return
    st.markdown("**Permutation-equivariant**: f(x∘π) = f(x)∘π")
    found = reversal(model, session.question(model), everything_seen=True)
    own = model.config.model.encoding
    taken = "which has no positions" if own.told == "nowhere" else f"without its {own.title} positions"
    st.markdown(plain(backwards(model.name, taken, found.moved)))


@claim
def backwards(name: str, taken: str, moved: float) -> str:
    """What becomes of the logits of a model that is read backwards, and by how much the greatest is `moved`."""
    begin = f"{name}, {taken}, without a mask: if it reads the input backwards,"
    if moved >= ROUNDING:
        return f"{begin} its logits change by up to {tiny(moved)}."
    return (
        f"{begin} all logits come out backwards ({_exactly(moved)}). Attention sums over a set of keys, and a set has "
        "no order."
    )


def _exactly(moved: float) -> str:
    """How well, in words."""
    return f"largest deviation {tiny(moved)}" if moved else "exactly"
