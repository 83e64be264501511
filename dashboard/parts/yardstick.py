"""What a model is measured by, position by position: of a law how often it is right, of a text what a token costs.

A page asks for the `yardstick` of its model, and measures, draws and tells with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from dashboard.components.plot import coloured, plot
from dashboard.figures import effects
from dashboard.figures.accuracy import accuracy_by_position_bars, position_bars
from dashboard.models import edits
from dashboard.models.model import Model, mask_edits
from dashboard.parts import claims, waiting
from dashboard.parts.prose import labels_of
from dashboard.parts.text import sentences, windows
from dashboard.view import session
from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.result import Accuracy
from transformer.analysis.accuracy.windows import ByPlace
from transformer.analysis.findings import Head
from transformer.analysis.heads.metrics import Estimate
from transformer.analysis.intervals import mean_interval, rivals, wilson
from transformer.foundation.claims import claim
from transformer.foundation.words import listed
from transformer.masks import Mask
from transformer.text.perplexity import said as in_words

if TYPE_CHECKING:
    from transformer.analysis.accuracy.reading import Reading
    from transformer.edits import Edit


SAME = 0.005
"""A smaller change is none: of an accuracy, and of a loss in nats a token."""
FALLEN = 0.5
"""What a target of a law loses that is named as lost."""
LONGEST = 256
"""Tokens of the longest windows of a text of which several fit into what answers a click."""


@dataclass(frozen=True)
class Yardstick(Protocol):
    """How good a model is at its task, at one length. Measured is an Accuracy of a law, a Reading of a text."""

    model: Model
    length: int

    measure: ClassVar[str]
    quantity: ClassVar[str]
    unit: ClassVar[str]
    """What follows a number."""
    worse: ClassVar[int]
    """1 where more is worse, −1 where less is."""
    heading: ClassVar[str]
    drawn: ClassVar[str]
    """What the picture by position shows."""
    by: ClassVar[str]
    gets: ClassVar[str]
    """What a model does to a token that it has right."""
    removing: ClassVar[str]
    price: ClassVar[str]
    """What removing a head costs."""
    priced: ClassVar[tuple[str, str]]
    """What the pointer says of such a cost, and of a gain."""
    most: ClassVar[float | None] = None
    """The greatest cost there may be."""
    waits: ClassVar[bool] = True
    """Is it worked out while somebody waits?"""

    def quick(self) -> Yardstick:
        """The same for many edits, one after the other, while somebody waits."""
        return self

    def measured(self, made: tuple[Edit, ...] = ()) -> Any:
        """What the model does under edits. Raises EditError."""

    def as_it_is(self, mask: Mask | None = None) -> Any:
        """What it does as it is trained, or under a mask."""

    def mean(self, found: Any) -> float:
        """In one number."""

    @property
    def against(self) -> tuple[float, str]:
        """What who reads nothing has, and what that is called."""

    def bars(self, found: Any, before: Any | None) -> go.Figure:
        """By position; with what it was before, where there is a before."""

    def basis(self, found: Any, before: Any | None) -> str:
        """What it was measured on, and what else stands in the picture."""

    def by_position(
        self, found: Any, before: Any | None, *, key: str, height: int, words: str = "", more: str = ""
    ) -> None:
        """The picture by position, and what is to be said of it."""
        words = words or self.compared(found, before)
        plot(self.bars(found, before), key=key, alt=f"{self.drawn}. {words}", height=height)
        st.caption(f"{words} {self.basis(found, before)}{more}")

    def state(self, found: Any) -> str:
        """How good it is."""

    def change(self, what: str, before: Any, after: Any) -> str:
        """What an edit does, in a sentence."""

    def change_of_mean(self, what: str, before: Any, after: Any) -> str:
        """The same of the one number."""
        return self.change(what, before, after)

    def compared(self, found: Any, before: Any | None) -> str:
        """What is seen in the picture by position."""

    def lost(self, before: Any, after: Any) -> str:
        """What it means that an edit of the positions costs something."""

    def interval(self, found: Any) -> tuple[float, float]:
        """The 95 % interval of the one number."""

    def furthest(self, all_kinds: str, worst: Sequence[str], of: int, mean: float, was: float) -> str:
        """Which of so many edits costs most, in a sentence: those that no interval tells from the worst, it first."""

    def over(self) -> str:
        """Over what the one number is a mean, in a sentence."""

    def costs(self, made: tuple[Edit, ...]) -> Estimate | None:
        """What removing each head costs, under edits; None until it is known. Raises EditError."""

    def by_head(
        self,
        made: tuple[Edit, ...],
        heads: Sequence[Head],
        gone: set[str],
        *,
        key: str,
        choose: Callable[[Head], None],
        does: str,
    ) -> None:
        """What removing each head costs; a click hands a head to `choose`."""
        measured = self.costs(made)
        if measured is None:
            return
        sites = list(dict.fromkeys(head.site for head in heads))
        many = len({head.kind for head in heads}) > 1
        names = [f"layer {site.split('.')[1]}{f', {Head(site, 0).kind}' if many else ''}" for site in sites]
        removed = np.array([str(head) in gone for head in heads]).reshape(len(sites), -1)
        said = dearest(self.removing, self.price, labels_of(heads), measured)

        def clicked() -> None:
            cell = st.session_state[key]["click"] or {}
            place = (cell.get("row"), cell.get("column"))
            chosen = next((head for head in heads if (sites.index(head.site), head.index) == place), None)
            if chosen is not None:
                choose(chosen)

        costs = measured.mean.reshape(removed.shape)
        figure = coloured(effects.cost_heatmap, costs, names, removed, self.priced, limit=self.most)
        plot(figure, key=key, alt=said, height=max(240, 60 + 42 * len(sites)), on_click=clicked)
        st.caption(f"{said} {self.removed_on(measured)}{does}")

    def removed_on(self, measured: Estimate) -> str:
        """What heads were removed on, where that is not the same as the rest."""


@dataclass(frozen=True)
class ByAccuracy(Yardstick):
    """Of a law: how often each target is right, before its ceiling and above chance."""

    measure = quantity = "accuracy"
    unit, by, gets, worse = "", "position", "gets right", -1
    heading = drawn = "Accuracy by position"
    removing, price, most = "removing", "{:.2f} of the answer’s accuracy", 1.0
    priced = ("without it, accuracy falls by {}", "without it, accuracy rises by {}")

    def measured(self, made: tuple[Edit, ...] = ()) -> Accuracy:
        return edits.accuracy(self.model, made, self.length)

    def as_it_is(self, mask: Mask | None = None) -> Accuracy:
        return self.model.accuracy(session.settings().sequences, mask, self.length)

    def mean(self, found: Accuracy) -> float:
        return float(found.mean[self.known].mean())

    @property
    def against(self) -> tuple[float, str]:
        return self.model.task.chance, "chance"

    @property
    def known(self) -> np.ndarray:
        """The symbols of the answer that can be known under the mask, bool [target]; all of the answer if none can."""
        known = ceilings.knowable(self.model.config, self.length)
        return known if known.any() else self.model.task.answers(self.length)

    def bars(self, found: Accuracy, before: Accuracy | None) -> go.Figure:
        ceiling = ceilings.ceiling(self.model.config, self.length).greatest
        return accuracy_bars(found, ceiling, before=None if before is None else before.mean)

    def basis(self, found: Accuracy, before: Accuracy | None) -> str:
        return f"{found.sequences:,} fresh sequences of length {self.length}.{claims.read(self.model)}"

    @property
    def part(self) -> str:
        return self.model.task.part

    def state(self, found: Accuracy) -> str:
        return f"the {self.part} stands at {found.of(self.part):.2f}"

    def change(self, what: str, before: Accuracy, after: Accuracy) -> str:
        """The largest change of its parts."""
        parts = {part: (before.of(part), after.of(part)) for part in reversed(self.model.task.parts)}
        most = max(parts, key=lambda part: np.nan_to_num(abs(parts[part][1] - parts[part][0])))
        same = f"{what} nothing is lost: the {self.part} keeps its {after.of(self.part):.2f}."
        return _went(f"{what} the {most}", same, *parts[most])

    def change_of_mean(self, what: str, before: Accuracy, after: Accuracy) -> str:
        was, now = self.mean(before), self.mean(after)
        said = f"{what}, accuracy on the answer"
        return _went(said, f"{said} stays at {now:.2f}.", was, now)

    def compared(self, found: Accuracy, before: Accuracy | None) -> str:
        now, part = found.of(self.part), self.part.capitalize()
        if before is None:
            return f"{part} {now:.2f}."
        return f"{part} {before.of(self.part):.2f} before, {now:.2f} after."

    def lost(self, before: Accuracy, after: Accuracy) -> str:
        lost = [name for name, fell in zip(after.names, before.mean - after.mean > FALLEN, strict=True) if fell]
        if not lost:
            return "The positions are all still there, but at other tokens."
        if set(lost) >= {name for name, each in zip(after.names, self.known, strict=True) if each}:
            return (
                "All that can be known is lost, although the positions are all still there: they are at other tokens."
            )
        return f"Lost: {', '.join(lost)}. The positions are all still there, but at other tokens."

    def interval(self, found: Accuracy) -> tuple[float, float]:
        low, high = wilson(np.array(self.mean(found) * found.sequences), found.sequences)
        return float(low), float(high)

    @claim
    def furthest(self, all_kinds: str, worst: Sequence[str], of: int, mean: float, was: float) -> str:
        if mean > was - SAME:
            return f"{all_kinds}: accuracy falls with none of them."
        if len(worst) == of > 1:
            return f"{all_kinds}: accuracy is about the same with all of them, {mean:.2f} at the lowest."
        if len(worst) > 1:
            return f"{all_kinds}: accuracy falls lowest with {_changes(worst, of)}, to about {mean:.2f}."
        return f"{all_kinds}: accuracy falls lowest with {worst[0]}, to {mean:.2f}."

    def over(self) -> str:
        targets = "all targets" if self.known.all() else "the symbols of the answer that can be known"
        return f" Mean over {targets}."

    def costs(self, made: tuple[Edit, ...]) -> Estimate:
        return edits.removal(self.model, made)

    def removed_on(self, measured: Estimate) -> str:
        return (
            f"Measured on {measured.sequences:,} fresh sequences of their own, over the whole answer: a small cost may "
            "differ from what the title says of the same removal, also in sign. "
        )


@dataclass(frozen=True)
class ByLoss(Yardstick):
    """Of a text: what each token costs, in nats, against what it costs who only knows how common it is."""

    tokens: int = edits.TOKENS
    """How many are read, in all."""

    measure, quantity = "loss", "nats a token"
    unit, by, gets, worse = " nats a token", "place", "guesses", 1
    heading, drawn = "Loss by place in the window", "Cross-entropy by place in the window"
    removing, price, waits = "on these tokens silencing", "{:.3f} nats a token", False
    priced = ("without it, a token costs {} nats more", "without it, a token costs {} nats less")

    def quick(self) -> Yardstick:
        return replace(self, length=min(self.model.task.length, LONGEST), tokens=edits.FEW_TOKENS)

    def measured(self, made: tuple[Edit, ...] = ()) -> Reading:
        return edits.reading(self.model, made, self.length, self.tokens)

    def as_it_is(self, mask: Mask | None = None) -> Reading:
        return self.measured(mask_edits(self.model, mask, self.length))

    def mean(self, found: Reading) -> float:
        return float(found.nats.mean())

    @property
    def against(self) -> tuple[float, str]:
        return self.model.task.chance_loss, "counts\nalone"

    def bars(self, found: Reading, before: Reading | None) -> go.Figure:
        now = ByPlace.of(found.nats, found.right)
        old = now if before is None else ByPlace.of(before.nats, before.right)
        return coloured(
            position_bars,
            now.nats,
            now.names,
            sentences(now),
            title=self.quantity,
            against=self.against,
            interval=(now.nats - now.half, now.nats + now.half) if before is None else None,
            before=None if before is None else old.nats,
            once=[f"place {name}: {nats:.3f} before" for name, nats in zip(old.names, old.nats, strict=True)],
        )

    def basis(self, found: Reading, before: Reading | None) -> str:
        intervals = "" if before is not None or len(found.nats) < 2 else " 95 % intervals over windows."
        return (
            f"{windows(*found.nats.shape)}; {found.right.mean():.2f} of the tokens are guessed.{intervals} The "
            "dotted line "
            "is the cost of knowing only how common each token is."
        )

    def state(self, found: Reading) -> str:
        return f"perplexity is {in_words(found.perplexity)} in {windows(*found.nats.shape)}"

    def change(self, what: str, before: Reading, after: Reading) -> str:
        was, now, read = self.mean(before), self.mean(after), windows(*before.nats.shape)
        if abs(now - was) < SAME:
            return f"{what} a token costs as much as before, {now:.2f} nats, in {read}."
        ends = f"from {in_words(before.perplexity)} to {in_words(after.perplexity)}"
        return f"{what} perplexity {'rises' if now > was else 'falls'} {ends} in {read}."

    def compared(self, found: Reading, before: Reading | None) -> str:
        return "Without edits." if before is None else "Open bars: without the edits. Filled bars: with them."

    def lost(self, before: Reading, after: Reading) -> str:
        return "The tokens and the mask are the same, so it uses the positions of the tokens."

    def interval(self, found: Reading) -> tuple[float, float]:
        of_windows = found.nats.mean(axis=1)
        if len(of_windows) < 2:
            return float(of_windows.mean()), float(of_windows.mean())
        _, low, high = mean_interval(of_windows)
        return low, high

    @claim
    def furthest(self, all_kinds: str, worst: Sequence[str], of: int, mean: float, was: float) -> str:
        before = f"{mean:.2f} nats, {was:.2f} before."
        if len(worst) == of > 1:
            return f"A token costs about as much with all of these changes: up to {before}"
        if len(worst) > 1:
            return f"A token costs most, and about as much, with {_changes(worst, of)}: up to {before}"
        return f"A token costs most with {worst[0]}: {before}"

    def over(self) -> str:
        return ""

    def costs(self, made: tuple[Edit, ...]) -> Estimate | None:
        nats = waiting.ready(edits.costs(self.model, made, self.length), "Silencing each head in turn …")
        return None if nats is None else Estimate(nats, nats, nats, max(1, edits.FEW_TOKENS // self.length))

    def removed_on(self, measured: Estimate) -> str:
        tokens = measured.sequences * self.length
        return f"At most {tokens:,} held-out tokens, in windows of {self.length}. "


def _changes(worst: Sequence[str], of: int) -> str:
    """Two changes by name, more by their number."""
    return listed(worst) if len(worst) < 3 else f"{len(worst)} of these {of} changes"


@claim
def dearest(removing: str, price: str, labels: Sequence[str], cost: Estimate) -> str:
    """Which head's removal costs most; where intervals overlap, which cost about as much."""
    heads, most = rivals(cost.mean, cost.low, cost.high), float(cost.mean.max())
    said = f"{removing[0].upper()}{removing[1:]} head {listed([labels[head] for head in heads], 'or')} costs"
    if most < SAME:
        return f"No head is needed by itself: {removing} any one costs less than {SAME:g} {price.partition(' ')[2]}."
    if len(heads) > 1:
        return f"{said} about as much, up to {price.format(most)}."
    return f"{said} most: {price.format(most)}."


def yardstick(model: Model, length: int) -> Yardstick:
    """What this model is measured by."""
    return (ByAccuracy if model.task.lawful else ByLoss)(model, length)


def accuracy_bars(
    found: Accuracy, ceiling: np.ndarray, *, before: np.ndarray | None = None, leaks: np.ndarray | None = None
) -> go.Figure:
    """An accuracy with its intervals, before a ceiling and above chance: float [target]."""
    low, high = found.interval()
    return coloured(
        accuracy_by_position_bars,
        found.mean,
        low,
        high,
        ceiling,
        found.chance,
        found.names,
        groups=found.groups,
        before=before,
        leaks=leaks,
        sequences=found.sequences,
    )


def _went(what: str, same: str, was: float, now: float) -> str:
    """Where an accuracy went; what rounds to the same has not changed."""
    if abs(now - was) < SAME or f"{was:.2f}" == f"{now:.2f}":
        return same
    return f"{what} {'falls' if now < was else 'rises'} from {was:.2f} to {now:.2f}."
