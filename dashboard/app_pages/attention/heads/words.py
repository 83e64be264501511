"""Sentences about heads: labels, what each does, and one under each picture of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dashboard.figures.kit.numbers import interval, share_text
from dashboard.models.model import Model
from dashboard.parts import claims
from dashboard.parts.heads import DOES, at_outputs
from dashboard.parts.prose import head_label
from transformer.analysis.findings import Head, Survey
from transformer.analysis.heads.kinds import KINDS, Kinds
from transformer.analysis.heads.metrics import METRICS, MIXED, HeadMetrics
from transformer.foundation.claims import claim
from transformer.foundation.words import listed

NAMED = 0.05
"""The share of a query's attention from which on a token is named beside the first."""
EARLY = 8
"""Queries at the beginning of a passage that are no example where a later one is."""
BLANKS = "Blanks and line ends are tokens, too: mostly one stands between a word and the word before."


@claim
def headline(model: Model, survey: Survey) -> str:
    """Which head looks most at the answer, and at how many outputs it may."""
    head = survey.foremost
    share = survey.expected_share[head]
    if math.isnan(share):
        return "Under this mask no head ever sees the token it should output."
    first = claims.foremost(survey.expected_share)
    labels = [head_label(each, model.config.model).removeprefix("head ") for each in first]
    return claims.looks(labels, share, "the answer", at_outputs(model))


@claim
def without(name: str, handed_over: str) -> str:
    """What is said of a model that has no attention."""
    return f"{name} has no attention: its decoder gets only {handed_over}."


@claim
def named_sentence(labels: Sequence[str], names: Sequence[str], *, choice: bool = True) -> str:
    """Which heads have a name, and how many have none; without a `choice` of keys none could have earned one."""
    if not choice:
        return "No query sees more than one key here, so where a head looks says nothing about it."
    if set(names) == {MIXED}:
        who = {1: "The one head is", 2: "Both heads are"}.get(len(names), f"All {len(names)} heads are")
        return f"{who} mixed: no single name fits{'' if len(names) == 1 else ' any of them'}."
    parts = []
    for name, (one, several) in DOES.items():
        own = [label for label, each in zip(labels, names, strict=True) if each == name]
        if not own:
            continue
        if name == MIXED:
            parts.append(f"{len(own)} {one if len(own) == 1 else several}")
        elif len(own) == 1:
            parts.append(f"head {own[0]} {one}")
        elif len(own) <= 4:
            parts.append(f"heads {', '.join(own[:-1])} and {own[-1]} {several}")
        else:
            parts.append(f"{len(own)} heads {several}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def kind_of(kinds: Kinds, head: Head, name: str) -> str:
    """What a head of a text is called: the kind of token that it prefers, else its name."""
    called = kinds.leaning(head) or name
    return KINDS.get(called, called)


def role(kinds: Kinds, head: Head, name: str) -> str:
    """The same as a table says it: a kind with the head's share on it."""
    kind = kinds.leaning(head)
    return kind_of(kinds, head, name) if kind is None else f"{KINDS[kind]} {share_on(kinds, head, kind)}"


def examples(kinds: Kinds) -> dict[str, Head]:
    """For each kind of token that some head prefers, that head: of several, the one farthest beyond an even look."""
    found: dict[str, list[tuple[float, Head]]] = {}
    for i, head in enumerate(kinds.heads):
        if (kind := kinds.leaning(head)) is not None:
            found.setdefault(kind, []).append((float(kinds.share[kind].mean[i] - kinds.even[kind][i]), head))
    return {kind: max(found[kind], key=lambda each: each[0])[1] for kind in KINDS if kind in found}


def telling(seen: Sequence[tuple[np.ndarray, np.ndarray]], names: Sequence[str]) -> int | None:
    """The word, from 0, at which most heads give their most to the kind of token that each of them prefers.

    `seen` has the pattern of each head and the cells of its kind, both [query, key]. Of several such words the one that
    gives most to these kinds; none of the first EARLY tokens where there is another. None where every word gives its
    most to something else.
    """
    shows = np.zeros(len(names))
    for pattern, cells in seen:
        shows += cells[np.arange(len(names)), pattern.argmax(axis=1)]
    share = np.mean([(pattern * cells).sum(axis=1) for pattern, cells in seen], axis=0)
    return _best(np.where(shows > 0, shows + share / 2, 0.0), names)


def decided(pattern: np.ndarray, names: Sequence[str]) -> int | None:
    """The word, from 0, that gives most to one token, float [query, key]; None where there is no word."""
    return _best(pattern.max(axis=1), names)


def _best(worth: np.ndarray, names: Sequence[str]) -> int | None:
    """The word that is worth most, if one is worth anything; the first EARLY tokens have little choice, and wait."""
    word = np.array([any(letter.isalnum() for letter in name) for name in names])
    late = np.arange(len(names)) >= EARLY
    for wanted in (word & late, word):
        if (worth[wanted] > 0).any():
            return int(np.where(wanted, worth, -1.0).argmax())
    return None


def kind_sentence(kinds: Kinds, head: Head) -> str:
    """Which kind of token a head prefers; empty where it prefers none."""
    kind = kinds.leaning(head)
    if kind is None:
        return ""
    has = f"ead {head.short} has {share_on(kinds, head, kind)} of its attention on {KINDS[kind]}."
    return f"Where a word asks, h{has}" if "word" in kinds.share else f"H{has}"


def even_sentence(kinds: Kinds, head: Head) -> str:
    """What a head that looks evenly would have on the kind that this head prefers; empty where it prefers none."""
    kind = kinds.leaning(head)
    if kind is None:
        return ""
    even = float(kinds.even[kind][kinds.heads.index(head)])
    return f"A head that looks evenly would have {share_text(even)} on {KINDS[kind]}."


def share_on(kinds: Kinds, head: Head, kind: str) -> str:
    """How much of its attention a head has on a kind of token, on average."""
    return share_text(float(kinds.share[kind].mean[kinds.heads.index(head)]))


def together_sentence(kinds: Sequence[str]) -> str:
    """What several heads read, each a kind of token of its own."""
    named = [KINDS[kind] for kind in kinds]
    return f"{len(named)} heads read {len(named)} different things: {', '.join(named[:-1])} and {named[-1]}."


def measured_on(passages: int) -> str:
    """On what the title's share was measured."""
    return f"Measured on {passages} passages that were held out."


@claim
def most_read(row: np.ndarray, visible: np.ndarray, keys: Sequence[str], query: str, place: int) -> str:
    """What one query looks at most, up to three tokens: its row of the pattern, float [key], where it may see a key.

    Those that no digit tells from the last of them are named too, or counted if they are many.
    """
    shares = {int(key): share_text(float(row[key])) for key in np.argsort(-row, kind="stable") if visible[key]}
    if not shares:
        return f"Here '{query}' at {place + 1} may see nothing."
    ranked = [*shares]
    first = [key for key in ranked[:3] if key == ranked[0] or row[key] >= NAMED]
    last = shares[first[-1]]
    level = [key for key in ranked if shares[key] == last]
    above = [key for key in first if shares[key] != last]
    few = len(above) + len(level) <= claims.FEW
    named = [f"'{keys[key]}' at {key + 1} ({shares[key]})" for key in (above + level if few else above)]
    tokens = named if few else [*named, f"{len(level)} tokens ({last} each)"]
    return f"Here '{query}' at {place + 1} looks most at {listed(tokens)}."


@claim
def scatter_sentence(metrics: HeadMetrics, labels: Sequence[str], across: str, up: str) -> str:
    """Which head stands highest, and how many have no place."""
    x, y = metrics.estimates[across].mean, metrics.estimates[up].mean
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        return f"No head here has values for both metrics: {METRICS[across].title} and {METRICS[up].title}."
    top = int(np.where(known, y, -np.inf).argmax())
    missing = int((~known).sum())
    left_out = (
        f" {missing} of {len(known)} heads are left out, because one of the two metrics is not defined for them."
        if missing
        else ""
    )
    means = [_amount(metrics, up, place).partition(" ")[0] for place in range(len(y))]
    level = [place for place in np.flatnonzero(known).tolist() if means[place] == means[top]]
    if len(level) > 1:
        who, _ = claims.heads_in_words([labels[place] for place in level])
        return f"{who} stand highest: {METRICS[up].title} {means[top]} each.{left_out}"
    return (
        f"Head {labels[top]} stands highest: {METRICS[up].title} {_amount(metrics, up, top)}, "
        f"{METRICS[across].title} {_amount(metrics, across, top)}.{left_out}"
    )


def _amount(metrics: HeadMetrics, name: str, head: int) -> str:
    estimate = metrics.estimates[name]
    return interval(float(estimate.mean[head]), float(estimate.half[head]))


@claim
def likeness_sentence(metrics: HeadMetrics, labels: Sequence[str]) -> str:
    """Which two heads are most alike; where no digit tells several pairs apart, all of them."""
    called = dict(zip(metrics.heads, labels, strict=True))
    alike = {f"{called[one]} and {called[other]}": cosine for (one, other), cosine in metrics.likenesses().items()}
    if not alike and len({head.kind for head in metrics.heads}) == len(metrics.heads):
        return "There are no two heads to compare."
    if not alike:
        return "No query sees more than one key here, so no two heads can be told apart."
    most = claims.foremost(alike)
    cosine = f"{alike[most[0]]:.2f}"
    if len(alike) == 1:
        return f"Heads {most[0]} are the only two to compare: their likeness is {cosine}."
    if len(most) == 1:
        return f"Heads {most[0]} are most alike: {cosine}."
    if len(most) == len(alike):
        return f"All {len(alike)} pairs of heads are about equally alike: {cosine} each."
    if len(most) > claims.FEW:
        return f"{len(most)} of {len(alike)} pairs of heads are most alike: {cosine} each."
    return f"These pairs of heads are most alike, {cosine} each: {'; '.join(most)}."
