"""Words that several pages use, each no stronger than what was measured: these are told the numbers, and choose.

Attention says where a head looks, and never that anything comes of it: "does the work" is said of removal alone. What a
bag allows bounds one layer, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from dashboard.figures.kit.numbers import signed
from dashboard.models.model import Model
from transformer.analysis.heads.metrics import Estimate
from transformer.analysis.intervals import rivals
from transformer.foundation.claims import claim
from transformer.foundation.words import listed

K = TypeVar("K", bound=Hashable)
MOSTLY = 0.5
"""The share of its attention from which on a head is said to look at one thing."""
NEEDED = 0.5
"""Accuracy that is lost without a head, with its whole interval, before it is said to do the work."""
FELT = 0.005
"""Accuracy below which a loss is not told from none: it would be written as 0.00."""

FEW = 4
"""Heads that are named one by one; more are counted."""
NEARLY = 0.8
"""The share of what tells a head's keys apart from which on it is said to be nearly the map that one term makes."""
BEYOND = 0.1
"""How far above the bag's ceiling several layers are, before they are said to do better. It is read on 128 sequences of
eight answers at least: four standard errors are less."""


def foremost(values: Mapping[K, float], write: Callable[[float], str] = "{:.2f}".format) -> list[K]:
    """What has the greatest value as it is written: what the digits cannot tell apart is no order. Nan has none."""
    known = {each: value for each, value in values.items() if value == value}
    most = write(max(known.values())) if known else ""
    return [each for each, value in known.items() if write(value) == most]


def tokens_in_words(names: Sequence[str], of: int = 0) -> str:
    """These tokens in words, or how many they are: "'a' and 'b'", "7 tokens"; all there were `of` the likeliest that
    are known, "16 tokens or more"."""
    if len(names) <= FEW:
        return listed([f"'{name}'" for name in names])
    return f"{len(names):,} tokens{' or more' if len(names) == of else ''}"


@claim
def largest_in_size(lead: str, values: np.ndarray, where: Callable[[int], str] = "in dimension {}".format) -> str:
    """`lead`, then which of these numbers is farthest from 0, and `where`; where no digit tells several apart, all."""
    if len(values) == 1:
        return f"{lead} It is {signed(values[0])}."
    sizes = dict(enumerate(np.abs(values).tolist()))
    most = foremost(sizes)
    size = f"{sizes[most[0]]:.2f}"
    if not size.strip("0."):
        return f"{lead} All are {'nearer to 0 than 0.005' if values.any() else '0'}."
    if len(most) == len(values):
        return f"{lead} All {len(values)} lie {size} from 0."
    if len(most) > FEW:
        return f"{lead} The largest in size are {len(most)} of these {len(values)}: each lies {size} from 0."
    if len(most) > 1:
        return f"{lead} The largest in size are {listed([f'{signed(values[at])} {where(at)}' for at in most])}."
    return f"{lead} The largest in size is {signed(values[most[0]])}, {where(most[0])}."


def heads_in_words(heads: Sequence[str]) -> tuple[str, bool]:
    """These heads in words, as a sentence begins, and whether there are several: "Heads 0.1 and 1.0", "6 heads"."""
    if len(heads) > FEW:
        return f"{len(heads)} heads", True
    return f"Head{'s' * (len(heads) > 1)} {listed(heads)}", len(heads) > 1


@claim
def looks(heads: Sequence[str], share: float, at: str, where: str = "") -> str:
    """Where those heads look that look there most, when attention was measured; `where` is at which outputs."""
    named, several = heads_in_words(heads)
    there = f"{share:.2f} of {'their' if several else 'its'} attention is there{where}."
    if share >= MOSTLY:
        return f"{named} {'look' if several else 'looks'} most at {at}: {there}"
    return f"No head looks mostly at {at}. {named} {'come' if several else 'comes'} closest: {there}"


@claim
def works(labels: Sequence[str], drop: Estimate) -> str:
    """What the heads are worth, when each was removed in turn: `drop` is the accuracy on the answer that was lost."""
    needed = [label for label, low in zip(labels, drop.low, strict=True) if low >= NEEDED]
    most = int(np.nanargmax(drop.mean)) if len(needed) != 1 else list(labels).index(needed[0])
    cost = f"{drop.mean[most]:.{2 if drop.mean[most] >= 0.1 else 3}f} of the accuracy"
    if len(needed) == 1:
        return f"Head {needed[0]} does the work: removing it costs {cost}."
    if needed:
        return f"Several heads are needed: removing any of {', '.join(needed)} costs at least a half of the accuracy."
    if drop.mean[most] < FELT:
        return f"No head is needed by itself: removing any one costs less than {FELT:g} of the accuracy."
    as_much = [labels[each] for each in rivals(drop.mean, drop.low, drop.high)]
    if len(as_much) > 1:
        return f"No head does the work alone: removing head {listed(as_much, 'or')} costs about as much, up to {cost}."
    return f"No head does the work alone: removing head {labels[most]} costs most, {cost}."


@claim
def together(pair: str, extra: float, noise: float, alone: tuple[float, float]) -> str:
    """What two heads are to each other, when both were removed: the cost of both, less the sum of each `alone`.

    Of all pairs it is the one with the greatest `extra`, so that has to stand out from the `noise` of the sample. One
    makes up for the other where neither alone is in the way; they are links of one chain where both cost as much as one
    of them.
    """
    if abs(extra) < FELT:
        return f"Removing two heads together costs the sum of removing each alone, to within {FELT:g}."
    if abs(extra) <= noise:
        return (
            "Removing two heads together costs the sum of removing each alone, as far as these sequences can tell "
            f"(± {noise:.2f})."
        )
    way = f"{extra:.2f} more" if extra > 0 else f"{-extra:.2f} less"
    said = f"Removing {pair} together costs {way} than the sum of removing each alone"
    if extra > 0 and min(alone) > -FELT:
        return f"{said}: one makes up for the other."
    if extra < 0 and min(alone) >= -extra - noise and min(alone) > noise:
        return f"{said}: they are links of one chain."
    costs = [signed(cost) for cost in (*alone, sum(alone) + extra)]
    below = " Below 0, accuracy rises." if min(*alone, sum(alone) + extra) <= -FELT else ""
    return f"{said}. Alone they cost {costs[0]} and {costs[1]}, together {costs[2]}.{below}"


@claim
def map_of(head: str, term: str, share: float) -> str:
    """What one `term` of a head's scores, as "content–position", does: its share of what tells the keys apart."""
    asks, asked = term.split("–")
    if share >= NEARLY:
        return f"{head[0].upper()}{head[1:]} is nearly a {asks}-to-{asked} map: {share:.2f} of its scores’ variance."
    if share >= MOSTLY:
        return f"The term {term} makes up {share:.2f} of the variance of {head}’s scores."
    return f"No term makes up most of {head}’s score variance: {term} has {share:.2f}."


def second_layer(layers: int, share: float, bag: float) -> str:
    """Why layers without positions, under a causal mask, have more than a `bag` allows one; empty where they have not.

    `share` and `bag` are shares of the second half of a reversal.
    """
    if layers < 2 or share < bag + BEYOND:
        return ""
    return (
        f"Without positions {layers} layers reach {share:.2f}, but one layer can reach at most {bag:.2f}: the "
        "causal mask "
        "tells them the order. In the first layer, the number of tokens that a query sees is its position. So what it "
        "writes depends on its position, and the second layer reads that (Haviv et al., 2022)."
    )


def reads_answers(model: Model) -> bool:
    """Does what it reads hold answers? What answers in place, or with one symbol, reads the question alone."""
    task = model.task
    return (task.has_source or not task.answers(task.length).all()) and task.answer_length(task.length) > 1


def read(model: Model) -> str:
    """What a model read before each answer, as a sentence behind others; empty where it reads no answer at all."""
    task = model.task
    if task.lawful and not reads_answers(model):
        return ""
    return (
        " Before each answer it reads the right answers so far (teacher forcing)."
        if task.lawful
        else " It reads the text itself."
    )
