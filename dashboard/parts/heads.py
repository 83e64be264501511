"""Attention heads on a page: the grid of all heads, which one is in focus, and sentences about them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from dashboard.components.head_grid import HeadGrid, heads_of, panels_of
from dashboard.components.origin import Maker
from dashboard.models.model import Model
from dashboard.parts.prose import head_label
from dashboard.view import session
from transformer.analysis.findings import Attention, Head, Survey
from transformer.analysis.heads.alignment import shares_beside
from transformer.analysis.heads.metrics import MIXED
from transformer.foundation.claims import claim
from transformer.foundation.words import counted
from transformer.masks import parse

LINK = "pattern"
"""Grids and heatmaps of one attention share the hovered cell."""
DRAWN = 256
"""Questions over which it is counted which outputs may see what they are to say, where that hangs on the question."""
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


def focused(heads: list[Head], survey: Survey) -> Head:
    """The head that the view names, or the one that looks most at the answer."""
    names = {str(head): head for head in heads}
    missing = "This model has no head of that name; another is shown."
    return names.get(session.named("head", names, "", lambda _: missing), survey.foremost)


def grid(
    attentions: Mapping[str, Attention],
    focus: Head | None,
    *,
    key: str,
    patterns: Mapping[str, np.ndarray] | None = None,
    size: int = 200,
    by_row: bool = False,
    makers: Sequence[Maker] | None = None,
) -> None:
    """All layers × heads as small multiples; a click or an arrow key makes another head the focus.

    Without a `focus` the grid outlines the one that the page's large head says, and need not be sent anew for it.
    `patterns` are drawn in place of the sample's own: the mean over many sequences. `makers` says whose they are, where
    they are not those of the page's model.
    """
    heads = heads_of(attentions)

    def chosen() -> None:
        index = st.session_state[key]["focus"]
        if index is not None and 0 <= index < len(heads):
            session.update(head=str(heads[index]))

    HeadGrid(
        panels_of(attentions, patterns),
        key=key,
        focus=None if focus is None else heads.index(focus),
        alt=f"Attention patterns of {counted(len(heads), 'head')}{'; one of them is enlarged' * (len(heads) > 1)}.",
        link=LINK,
        size=size,
        by_row=by_row,
        makers=makers,
    ).draw(chosen)


def working_sentence(model: Model, head: Head, survey: Survey) -> str:
    """What a head does about the task, on average: of a GRU, which of the encoder's states its decoder looks at."""
    if not model.task.points and head.site.endswith("self_attention"):
        return habit_sentence(head, survey)
    if not model.task.points:
        return f"This task expects no particular key of {head_label(head, model.config.model)}."
    if not model.config.model.recurrent:
        return share_sentence(model, head, survey)
    return alignment_sentence(survey.patterns[head.site][head.index], model.task.expected_keys(model.task.example))


@claim
def share_sentence(model: Model, head: Head, survey: Survey) -> str:
    """What a head does about the task, and at how many outputs."""
    share = survey.expected_share.get(head)
    if share is None:
        return f"This task expects no particular key of {head_label(head, model.config.model)}."
    if math.isnan(share):
        return f"Under this mask {head_label(head, model.config.model)} never sees the token it should output."
    only, name = "" if share >= 0.5 else "only ", head_label(head, model.config.model)
    return (
        f"{name[0].upper()}{name[1:]} puts {only}{share:.2f} of its attention on the token it should output"
        f"{at_outputs(model)}."
    )


def at_outputs(model: Model) -> str:
    """At which outputs a share on the token to be said was measured; empty where all of them may see that token."""
    task = model.task
    if task.has_source:
        return ""
    questions = np.random.default_rng(0).integers(0, task.symbols, (1 if task.rearranges else DRAWN, task.surveyed))
    expected = np.stack([task.expected_keys(each) for each in questions])
    seeing = (expected & parse(model.config.model.mask).matrix(expected.shape[1])).any(axis=2).sum(axis=1)
    outputs = int(task.answers(task.surveyed).sum())
    if (seeing == outputs).all():
        return ""
    if seeing.min() == seeing.max():
        return f", at the {seeing[0]} of {outputs} outputs that may see it"
    return f", at those {seeing.mean() / outputs:.2f} of the outputs that may see it"


# --- where a GRU's decoder looks, in words


@claim
def alignment_sentence(pattern: np.ndarray, expected: np.ndarray) -> str:
    """Which of the encoder's states a GRU looks at; `expected` is the one after the token to be said. [query, key].

    A state has read all up to its token: that of a later one may hold the token to be said as well.
    """
    shares = shares_beside(pattern, expected)
    best = max(shares, key=lambda later: (shares[later], -abs(later)))
    places = f"{counted(abs(best), 'token')} {'after' if best > 0 else 'before'}"
    if shares[best] < CLEAR:
        where = f"The token {places} the one it should output" if best else "The token it should output"
        itself = f" On that one is {shares[0]:.2f}." if best else ""
        return (
            f"The decoder looks mostly at no single place. {where} comes closest: {shares[best]:.2f} of its attention "
            f"is there.{itself}"
        )
    if not best:
        return f"The decoder looks at the token it should output: {shares[0]:.2f} of its attention is there."
    return (
        f"The decoder looks {places} the one it should output: {shares[best]:.2f} of its attention is there, and "
        f"{shares[0]:.2f} on that one."
    )


# --- what a head looks at by habit, told from its mean pattern: the token before, itself, the first one

PLACES = {"previous": "the token before", "self": "itself", "first": "the first token"}
CLEAR = 0.5
"""The share from which on a head is said to do one thing."""


def habits(mean: np.ndarray) -> dict[str, float]:
    """How much of a mean pattern, float [query, key], lies on each of PLACES; the queries that have no choice left out.

    As the metrics of heads count (transformer.analysis.heads.measure): "first" where that is neither the query nor its
    neighbour; nan where no query is asked.
    """
    n = len(mean)

    def share(cells: np.ndarray) -> float:
        return float(cells.mean()) if len(cells) else float("nan")

    return {
        "previous": share(np.diagonal(mean, -1)),
        "self": share(np.diagonal(mean)[1:]),
        "first": share(mean[2:, 0] if n > 2 else np.zeros(0)),
    }


@claim
def habit_sentence(head: Head, survey: Survey) -> str:
    """What one head does, from the numbers."""
    found = habits(survey.patterns[head.site][head.index])
    name = max(found, key=lambda each: np.nan_to_num(found[each]))
    if found[name] >= CLEAR:
        return f"Head {head.short} looks at {PLACES[name]}: {found[name]:.2f} of its attention is there."
    return f"No single place has half of head {head.short}’s attention: {_listed(found)}."


def _listed(found: dict[str, float]) -> str:
    shares = {name: share for name, share in found.items() if not np.isnan(share)}
    if not shares:
        return "it never has more than one key to choose from"
    rest = ["the rest on other tokens"] if sum(shares.values()) < 0.9 else []
    return ", ".join([f"{share:.2f} on {PLACES[name]}" for name, share in shares.items()] + rest)
