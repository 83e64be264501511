"""Sentences about heads: labels, what each does, and one under each picture of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dashboard.figures.kit.numbers import interval, share_text
from dashboard.parts.heads import CLEAR, habits
from transformer.analysis.findings import Head, Survey
from transformer.analysis.heads.kinds import KINDS, Kinds
from transformer.analysis.heads.metrics import MARGIN, METRICS, MIXED, HeadMetrics

LEANING = "leaning"
"""What a head does that has no name of its own and yet prefers one kind of token."""
DOES: Mapping[str, tuple[str, str]] = {
    "expected": ("reads the expected key", "read the expected key"),
    "previous": ("looks at the token before", "look at the token before"),
    "self": ("looks at itself", "look at themselves"),
    "first": ("looks at the first key", "look at the first key"),
    "uniform": ("looks evenly at all it may see", "look evenly at all they may see"),
    LEANING: ("looks more than evenly at one kind of token", "look more than evenly at one kind of token"),
    MIXED: ("is mixed", "are mixed"),
}
"""What a name means, of one head and of several."""


def named_sentence(labels: Sequence[str], names: Sequence[str], *, choice: bool = True) -> str:
    """Which heads have a name, and how many have none; without a `choice` of keys none could have earned one."""
    if not choice:
        return "No query sees more than one key here, so where a head looks says nothing about it."
    if set(names) == {MIXED}:
        who = {1: "The one head is", 2: "Both heads are"}.get(len(names), f"All {len(names)} heads are")
        return f"{who} mixed: no single thing stands out."
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


def role(kinds: Kinds, head: Head, name: str) -> str:
    """What a table calls a head of a text: its name, else the kind of token that it prefers with its share."""
    kind = kinds.leaning(head) if name == MIXED and head in kinds.heads else None
    if kind is None:
        return name
    return f"{KINDS[kind]} {share_text(float(kinds.share[kind].mean[kinds.heads.index(head)]))}"


def kind_sentence(kinds: Kinds, head: Head, label: str) -> str:
    """Which kind of token one head prefers, beside a head that looks evenly."""
    if head not in kinds.heads:
        return ""
    kind, i = kinds.leaning(head), kinds.heads.index(head)
    if kind is None:
        return f"On no kind of token has head {label} {MARGIN:g} more of its attention than a head that looks evenly."
    own, even = float(kinds.share[kind].mean[i]), float(kinds.even[kind][i])
    return (
        f"Head {label} has {share_text(own)} of its attention on {KINDS[kind]}; a head that looks evenly would have "
        f"{share_text(even)} there."
    )


def most_read(row: np.ndarray, visible: np.ndarray, keys: Sequence[str], query: str, place: int) -> str:
    """Which three tokens one query looks at most: its row of the pattern, float [key], where it may see a key."""
    found = [int(key) for key in np.argsort(-row, kind="stable") if visible[key]][:3]
    if not found:
        return f"On this passage query '{query}' at {place + 1} may see nothing."
    named = [f"'{keys[key]}' at {key + 1} ({share_text(float(row[key]))})" for key in found]
    several = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]
    return f"On this passage query '{query}' at {place + 1} looks most at {several}."


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
    return (
        f"Head {labels[top]} stands highest: {METRICS[up].title} {_amount(metrics, up, top)}, "
        f"{METRICS[across].title} {_amount(metrics, across, top)}.{left_out}"
    )


def _amount(metrics: HeadMetrics, name: str, head: int) -> str:
    estimate = metrics.estimates[name]
    return interval(float(estimate.mean[head]), float(estimate.half[head]))


def likeness_sentence(metrics: HeadMetrics, labels: Sequence[str]) -> str:
    """Which two heads are most alike."""
    pair = metrics.most_alike()
    if pair is None:
        return "There are no two heads to compare."
    one, other = (labels[metrics.heads.index(head)] for head in pair[:2])
    return f"Heads {one} and {other} are most alike: {pair[2]:.2f}."


def headline(heads: Sequence[Head], survey: Survey) -> str:
    """Which head looks at the token before, and how much; or that none does."""
    best, others = survey.foremost, len(heads) - 1
    share = habits(survey.patterns[best.site][best.index])["previous"]
    many = f"of all {others + 1} heads" if others else "the one head"
    if share >= CLEAR:
        return (
            f"On held-out text, head {best.short} looks at the token before: {share:.2f} of its attention is "
            "there, the "
            f"most {many}."
        )
    return (
        f"On held-out text, no head looks mostly at the token before. Head {best.short} comes closest, with "
        f"{share:.2f}."
    )
