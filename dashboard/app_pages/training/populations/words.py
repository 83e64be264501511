"""Sentences about a population: each says how many seeds it counts, and how sure its numbers are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dashboard.app_pages.training.populations.measured import Combination, Counted
from dashboard.figures.kit.numbers import between, share_text
from dashboard.parts.prose import encoding_name
from transformer.analysis.findings import Head
from transformer.analysis.heads.metrics import MIXED
from transformer.experiments.populations.plan import Value, shown
from transformer.experiments.populations.statistics import (
    FEWEST,
    Frequency,
    median,
    median_interval,
    steps_until_solved,
)
from transformer.experiments.populations.table import Row
from transformer.experiments.populations.words import outcome
from transformer.foundation.claims import claim
from transformer.foundation.words import counted, listed
from transformer.norms import NORMS
from transformer.training.library import WORDS

COUNTED = {"n_heads": "head", "n_layers": "layer"}
MOST_LISTED = 4
"""Combinations whose numbers are all said; of more, only those of the quickest and the slowest."""
MANY = 20
"""From so many seeds on, the band leaves out one in ten of them."""


# --- settings


def setting_name(name: str) -> str:
    """A setting where people read."""
    return WORDS.get(name, name.replace("_", " "))


def setting_title(name: str) -> str:
    """The same above its control."""
    said = setting_name(name)
    return said if "_" in said else capital(said)


def capital(text: str) -> str:
    """At the head of a sentence."""
    return f"{text[0].upper()}{text[1:]}"


def value_name(name: str, value: Value) -> str:
    """One of its values."""
    if name == "norm_kind":
        return NORMS[shown(value)].title
    return encoding_name(shown(value)) if name == "positions" else shown(value)


def noun(name: str, value: Value) -> str:
    """A setting with its value: "learned positions", "4 heads", "learning rate 0.005"."""
    if name == "positions":
        return f"{'no' if value == 'none' else value_name(name, value)} positions"
    if name == "norm_kind":
        return value_name(name, value)
    if name in COUNTED and isinstance(value, int):
        return counted(value, COUNTED[name])
    return f"{setting_name(name)} {value_name(name, value)}"


def called(settings: Mapping[str, Value]) -> str:
    """A combination on an axis: "learned positions, 4 heads"."""
    return ", ".join(noun(name, value) for name, value in settings.items()) or "the one setting"


def phrase(settings: Mapping[str, Value]) -> str:
    """The same in a sentence, with a blank before it: " with learned positions and 4 heads"; empty where nothing
    varies."""
    return f" with {listed([noun(name, value) for name, value in settings.items()])}" if settings else ""


# --- steps until solved


@claim
def headline(each: Combination) -> str:
    """What came out of one combination, in a sentence."""
    planned, ended, setting = len(each.members), len(each.rows), phrase(each.settings)
    if not ended and planned == 1:
        return f"The one training{setting} has not ended yet."
    if not ended:
        return f"None of the {counted(planned, 'training')}{setting} has ended yet."
    if not each.finished:
        so_far = "" if ended == planned else f" so far, of {planned} planned"
        return f"No training{setting} could be finished: {ended} failed{so_far}."
    begin = "Solved" if ended == planned else "So far solved"
    left = "" if ended == planned else f"; {planned - ended} of {planned} have not ended"
    setting = setting and f",{setting}"
    return f"{begin} from {outcome(each.rows)}{setting}{left}."


@claim
def share_sentence(each: Combination) -> str:
    """Which share of the seeds is solved, and what is not counted."""
    said = ""
    if each.finished:
        steps = steps_until_solved(each.rows)
        said = (
            f"The share of seeds that is solved is {share_text(steps.share)}, over {counted(steps.seeds, 'seed')} "
            f"({between(steps.share_low, steps.share_high)})."
        )
        if len(each.rows) < len(each.members):
            said += " Seeds that solve it quickly end first, so these numbers will change."
    if each.failed:
        count, reasons = len(each.failed), list(dict.fromkeys(row.reason for row in each.failed))
        more = f", and {counted(len(reasons) - 1, 'other reason')}" if len(reasons) > 1 else ""
        verb = "is" if count == 1 else "are"
        said += f" {counted(count, 'training')} failed and {verb} not counted: {reasons[0]}{more}."
    return said.strip()


@claim
def steps_sentence(shown: Sequence[Combination]) -> str:
    """What the picture of steps says: every combination, or the quickest and the slowest of many."""
    known = [each for each in shown if each.finished]
    if not known:
        return "No training has ended yet."
    if len(known) <= MOST_LISTED:
        return " ".join(f"{capital(called(each.settings))}: {outcome(each.rows)}." for each in known)
    return ends(known, _slowness, _as_slow, "Quickest", "Slowest")


def _slowness(each: Combination) -> tuple[float, float]:
    """By the median, and where fewer than half are solved by the share."""
    steps = steps_until_solved(each.rows)
    return steps.median, -steps.share


def _as_slow(one: Combination, other: Combination) -> bool:
    """Do the intervals of two medians overlap, or of two shares where neither solves half? Equal without intervals."""
    mine, theirs = steps_until_solved(one.rows), steps_until_solved(other.rows)
    if math.isinf(mine.median) and math.isinf(theirs.median):
        return _as_often(one, other)
    if math.isnan(mine.low + theirs.low):
        return _slowness(one) == _slowness(other)
    return mine.low <= theirs.high and theirs.low <= mine.high


def _as_often(one: Combination, other: Combination) -> bool:
    """Do the intervals of two shares overlap?"""
    mine, theirs = steps_until_solved(one.rows), steps_until_solved(other.rows)
    return mine.share_low <= theirs.share_high and theirs.share_low <= mine.share_high


def ends(
    known: Sequence[Combination],
    rank: Callable[[Combination], Any],
    alike: Callable[[Combination, Combination], bool],
    least: str,
    most: str,
) -> str:
    """The combinations with the least and the greatest rank, and how many others are `alike` to each of them."""
    ranks = [rank(each) for each in known]
    if min(ranks) == max(ranks):
        all_of_them = f"All {len(known)} are level. " if len(known) > 1 else ""
        return f"{all_of_them}{capital(called(known[0].settings))}: {outcome(known[0].rows)}."
    said = []
    for word, end in ((least, min(ranks)), (most, max(ranks))):
        each = known[ranks.index(end)]
        level = sum(alike(each, other) for other in known if other is not each)
        also = f" ({counted(level, 'other')} of {len(known)} cannot be told from it)" if level else ""
        said.append(f"{word}: {called(each.settings)}{also}, {outcome(each.rows)}.")
    return " ".join(said)


# --- accuracy


def band_ends(seeds: int) -> tuple[float, float]:
    """Between which quantiles over the seeds the band lies: all of few seeds, about nine of ten of many."""
    return (0.05, 0.95) if seeds >= MANY else (0.0, 1.0)


def band_words(seeds: int) -> str:
    """What lies in the band."""
    return (
        f"about nine of ten of {seeds} seeds"
        if seeds >= MANY
        else f"all {seeds} seeds"
        if seeds > 1
        else "the one seed"
    )


@claim
def band_sentence(rows: Sequence[Row], groups: Sequence[str]) -> str:
    """How much of the last part of the sequence is right, in the median over the seeds.

    Where the band is drawn from the lowest to the highest share, as they are written, all seeds lie in it.
    """
    kept = [row for row in rows if row.correct]
    half = np.array(groups) == groups[-1]
    shares = sorted(float(np.array(row.accuracy)[half].mean()) for row in kept)
    part = f"the {groups[-1]}" if groups[-1] else "the sequence"
    if len(shares) == 1:
        return f"In the one seed {share_text(shares[0])} of {part} is right."
    band = [share_text(float(edge)) for edge in np.quantile(shares, band_ends(len(shares)))]
    whole = band == [share_text(shares[0]), share_text(shares[-1])]
    inner, outer = median_interval(shares)
    sure = f"fewer than {FEWEST} seeds have no 95 % interval" if math.isnan(inner) else between(inner, outer)
    return (
        f"In the median of {counted(len(shares), 'seed')} {share_text(median(shares))} of {part} is right ({sure}); "
        f"{f'all {len(shares)} seeds' if whole else band_words(len(shares))} lie between {band[0]} and {band[1]}."
    )


# --- kinds of heads


def layer_name(site: str, sites: Sequence[str]) -> str:
    """A layer: "layer 1", or with its attention where there are several kinds of it."""
    head = Head(site, 0)
    several = len({Head(each, 0).kind for each in sites}) > 1
    return f"{head.kind}, layer {head.layer}" if several else f"layer {head.layer}"


@claim
def kinds_sentence(found: Sequence[Frequency]) -> str:
    """What forms most often, layer by layer."""
    if not found:
        return "No head has been measured."
    sites = list(dict.fromkeys(each.layer for each in found))
    named = [each for each in found if each.kind != MIXED]
    if not named:
        return f"Every head of {counted(found[0].seeds, 'seed')} is mixed: no single thing stands out."
    most = sorted(named, key=lambda each: -each.members)[:2]
    parts = [
        f"in {layer_name(each.layer, sites)} at least one head is “{each.kind}” in {each.members} of "
        f"{counted(each.seeds, 'seed')} ({between(each.low, each.high)})"
        for each in most
    ]
    return f"{capital('; '.join(parts))}."


def kind_words(layer: str, kind: str, members: int, seeds: int, low: float, high: float) -> str:
    """A cell of the picture of kinds."""
    return (
        f"{capital(layer)}: at least one head is “{kind}”\nin {members} of {counted(seeds, 'seed')}:\n"
        f"{share_text(members / seeds)}, {between(low, high)}"
    )


# --- two settings


def pointed(each: Combination) -> str:
    """What the pointer says of a combination, in short lines."""
    if not each.finished:
        why = "all failed" if len(each.failed) == len(each.members) else "none has ended yet"
        return f"{capital(called(each.settings))}:\n{counted(len(each.members), 'seed')}, {why}"
    steps = steps_until_solved(each.rows)
    said = outcome(each.rows).replace("; ", ";\n").replace(" (", "\n(")
    share = f"share solved {share_text(steps.share)}, {between(steps.share_low, steps.share_high)}"
    return f"{capital(called(each.settings))}:\n{said};\n{share}"


@claim
def phase_sentence(cells: Sequence[Combination], colour: str) -> str:
    """Which cell has most of what the colour says, and which has least."""
    known = [each for each in cells if each.finished]
    if not known:
        return "No training of these has ended yet."
    if colour == "steps":
        return ends(known, _slowness, _as_slow, "Quickest", "Slowest")

    def seldom(each: Combination) -> float:
        return -steps_until_solved(each.rows).share

    return ends(known, seldom, _as_often, "Solved most often", "Solved least often")


# --- how far it is


def progress(found: Counted) -> str:
    """How many trainings have ended."""
    ended, planned = len(found.found.rows), found.found.planned
    solved = sum(row.solved for row in found.found.rows.values())
    return f"{ended:,} of {planned:,} trainings of this population have ended, {solved:,} of them solved."
