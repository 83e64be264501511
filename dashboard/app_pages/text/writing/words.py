"""Sentences about a text that a model writes: its surprise, each token, what was looked at."""

from __future__ import annotations

import numpy as np

from dashboard.app_pages.text.writing.draft import Draft, Ranking
from transformer.foundation.claims import claim
from transformer.foundation.words import counted
from transformer.sampling import Sampling
from transformer.text.perplexity import perplexity, said

TOLD = 3
"""Words that are named in a sentence about attention, at most."""
GUESSES = 10
"""Of so many of its first guesses a token is told which it was."""


@claim
def headline(draft: Draft, most: int, live: bool) -> str:
    """How many of the tokens it wrote were its first guess; how many it writes, while it does."""
    n = len(draft.said)
    if live or not n:
        return f"It writes {most} token{'s' * (most != 1)}, one by one."
    first = sum(each.probability >= each.alternatives.probabilities[0] for each in draft.said)
    if n == 1:
        return f"The token that it wrote was {'' if first else 'not '}its first guess."
    part = {0: "None of the", n: "Each of the"}.get(first, f"{first} of the")
    return f"{part} {n} tokens that it wrote {'were' if 1 < first < n else 'was'} its first guess."


@claim
def own_surprise(draft: Draft, live: bool) -> str:
    """How surprising its own text was to it; nothing while it writes."""
    if live or not draft.said:
        return ""
    return f"To the model itself this text has perplexity {said(perplexity(draft.nats))}."


def at(draft: Draft, place: int) -> str:
    """A token and where it stands: "‘sea’ at 34", positions from 1."""
    return f"‘{draft.names[place]}’ at {place + 1}"


def says(draft: Draft) -> tuple[str, ...]:
    """A sentence for each token: how it came."""
    told = []
    for place in range(len(draft.tokens)):
        said = draft.said_at(place)
        if place == 0:
            told.append("‘SEP’ at 1: every text begins with this token")
        elif said is None:
            told.append(f"{at(draft, place)}: part of the prompt")
        else:
            told.append(
                f"{at(draft, place)}: the model gave it {said.probability:.3f}. It was drawn with {said.drawn_with:.3f}"
            )
    return tuple(told)


def how(sampling: Sampling, speed: float) -> str:
    """How the tokens are drawn, and how fast."""
    if sampling.temperature == 0:
        drawn = "Takes the likeliest token each time"
    else:
        cuts = [f"among the {sampling.top_k} likeliest"] if sampling.top_k else []
        cuts += [f"among the fewest with total probability {sampling.top_p:g}"] if sampling.top_p < 1 else []
        whole = "" if cuts else " among all tokens"
        drawn = f"Drawn from softmax(logits / {sampling.temperature:g}){''.join(f', {cut}' for cut in cuts)}{whole}"
    drawn += ", without ⟨unk⟩"
    told = f", {speed:,.0f} tokens/s" if speed else ""
    return f"{drawn}{told}. The same link gives the same text."


def out_of_sight(draft: Draft, place: int | None, n_ctx: int) -> str:
    """What of a text that is longer than the model reads no longer counted, at a place or at its end; else nothing.

    A token's place is also how many stand before it; `n_ctx` of them can be read.
    """
    from transformer.generation import window_start

    reads = f"It reads {n_ctx} tokens at most, including ‘SEP’"
    if place is not None and (lost := window_start(place, n_ctx)):
        which = "the first was" if lost == 1 else f"the first {lost:,} were"
        return f"{reads}. For {at(draft, place)}, {which} no longer read."
    if lost := window_start(len(draft.tokens) - 1, n_ctx):
        return f"{reads}. At the end of this text it no longer reads the first {lost:,} of {len(draft.tokens):,}."
    return ""


@claim
def came(draft: Draft, place: int, found: Ranking) -> str:
    """How likely a token was, and where it ranked: behind those alone that were likelier."""
    rank = int((found.probabilities > found.probabilities[found.came]).sum()) + 1
    share = f"{found.probabilities[found.came]:.3f}"
    ranked = f"its guess number {rank}" if rank > 1 else "its first guess"
    if rank > GUESSES:
        ranked = "not among its first ten guesses"
    if found.drawn_with is None:
        return f"{at(draft, place)} is part of the prompt. The model gave it {share}, {ranked}."
    return (
        f"{at(draft, place)} had probability {share}, {ranked}. It was drawn with {found.drawn_with[found.came]:.3f}."
    )


@claim
def looked(draft: Draft, place: int, who: str, row: np.ndarray) -> str:
    """Which query said a token, and at what it looked most; `row` is float [token], nan where nothing was seen.

    Of tokens that got as much, as it is written, either all are named or none is.
    """
    query = f"query {place}, ‘{draft.names[place - 1]}’"
    return f"{at(draft, place)} was predicted by {query}. There {who} {_most(draft, row)}."


def _most(draft: Draft, row: np.ndarray) -> str:
    """ "looked most at ‘sea’ at 34 (0.40), ‘the’ at 33 (0.21)"; where nothing stands out, how many got how little."""
    seen = np.flatnonzero(np.nan_to_num(row) > 0)
    if not len(seen):
        return "saw no token"
    order = seen[np.argsort(-row[seen], kind="stable")]
    shares = [f"{row[key]:.2f}" for key in order.tolist()]
    if float(shares[0]) == 0:
        return f"gave none of {counted(len(seen), 'token')} as much as 0.005"
    if len(shares) > TOLD and shares[TOLD] == shares[TOLD - 1]:
        told = shares.index(shares[TOLD])
    else:
        told = min(TOLD, len([share for share in shares if float(share)]))
    if not told:
        return f"looked most at {shares.count(shares[0])} tokens ({shares[0]} each)"
    named = zip(order[:told].tolist(), shares[:told], strict=True)
    return f"looked most at {', '.join(f'{at(draft, key)} ({share})' for key, share in named)}"
