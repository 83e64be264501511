"""Sentences of the page "It reads", made from its numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dashboard.figures.kit.numbers import give_or_take, interval
from dashboard.parts.claims import foremost, heads_in_words
from dashboard.parts.text import whole
from transformer.analysis.accuracy.surprise import Growth, Surprise
from transformer.analysis.findings import Head
from transformer.analysis.heads.distances import MOST, Distances
from transformer.analysis.heads.induction import INDUCTION, LEAST, PREVIOUS, Repetition
from transformer.analysis.heads.metrics import MARGIN, Estimate
from transformer.foundation.claims import claim
from transformer.foundation.words import counted, listed
from transformer.text.perplexity import COUNTING
from transformer.text.perplexity import said as in_words
from transformer.text.tokens import UNKNOWN, shown

NAMES = (INDUCTION, PREVIOUS)
SMALL = ("a", "an", "and", "for", "in", "of", "or", "the", "to")
FEW = 3
"""Tokens that are named one by one; more are counted."""


def called(token: str) -> str:
    """A token in a sentence: “the”, or what stands for a blank or a line's end."""
    return f"“{shown(token)}”"


def probability(p: float) -> str:
    """ "0.040"; one too small for three digits as "1 in 24,000"."""
    return f"{p:.3f}" if p >= 0.001 else f"1 in {float(f'{1 / max(p, 1e-15):.2g}'):,.0f}"


# --- surprise

GRAMS = ("unigram", "trigram", "5-gram")
"""The models that count runs of tokens and are always named; the best of all is named beside them."""


@claim
def whole_sentence(evaluation: Mapping[str, Any], wordless: float) -> str:
    """What all that is held out costs the run, and what it costs models that count, where these were measured on it.

    All orders that cost as little are named. `wordless` is the share of its tokens without a letter or a digit: they
    too take a place in what is counted.
    """
    said = f"{whole(evaluation)[0].upper()}{whole(evaluation)[1:]}"
    counting = counted_on_the_same(evaluation)
    if counting is None:
        return f"{said}."
    orders = {name: order for name, order in COUNTING.items() if order > 1}
    best = foremost({name: -float(counting[name]) for name in orders})
    each = ", ".join(f"{counting[name]:.2f} for a {name}" for name in GRAMS if name not in best)
    longest = max(best, key=orders.__getitem__)
    seen = [f"{article(name)} sees {(1 - wordless) * (orders[name] - 1):.1f} words" for name in (GRAMS[-1], longest)]
    return (
        f"{said}. Models that count runs of tokens have {each} and {counting[longest]:.2f} for "
        f"{listed([article(name) for name in best])}, the best "
        f"of orders {min(orders.values())} to {max(orders.values())} ({counting['library']}). A share of "
        f"{wordless:.2f} of the tokens are blanks, line ends or marks: on average "
        f"{' and '.join(dict.fromkeys(seen))}."
    )


def counted_on_the_same(evaluation: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The perplexities of models that count runs of tokens; None where these were not measured on the same tokens."""
    counting: Mapping[str, Any] = evaluation.get("baselines", {})
    same = counting.get("snapshot") == evaluation.get("snapshot") and counting.get("tokens") == evaluation["read"]
    return counting if same and COUNTING.keys() <= counting.keys() else None


def perplexities(evaluation: Mapping[str, Any]) -> dict[str, float]:
    """What is compared by name, models that count and the run itself last; empty where nothing can be compared."""
    counting = counted_on_the_same(evaluation)
    if counting is None:
        return {}
    best = min((name for name, order in COUNTING.items() if order > 1), key=lambda name: float(counting[name]))
    found = {name: float(counting[name]) for name in dict.fromkeys([*GRAMS, best])}
    return found | {"this model": float(evaluation["perplexity"])}


def article(name: str) -> str:
    """ "a 5-gram", "an 8-gram"."""
    return f"an {name}" if name.startswith("8") else f"a {name}"


@claim
def headline(found: Surprise, words: Sequence[str]) -> str:
    """Which token surprised it most, and what that cost; an unknown one only where all are.

    Of several that cost as much none is the one: a few are named, more are counted.
    """
    most = most_surprising(found, words)
    nats = f"{found.nats[most]:.2f} nats"
    if len(words) == 1:
        return f"{called(words[0])} surprised it by {nats}."
    level = foremost({at: float(found.nats[at]) for at in candidates(words)})
    if len(level) == len(words):
        return f"Each of the {len(words)} tokens surprised it as much: {nats}."
    which = "Of known words, " if found.nats[most] < found.nats.max() else ""
    names = list(dict.fromkeys(called(words[at]) for at in level))
    who = listed(names) if len(names) == len(level) <= FEW else f"{len(level)} tokens"
    return f"{which}{who} surprised it most: {nats}{' each' if len(level) > 1 else ''}."


def candidates(words: Sequence[str]) -> list[int]:
    """The places of the tokens that are compared: of those that it knows, or of all where it knows none."""
    return [at for at, word in enumerate(words) if word != UNKNOWN] or list(range(len(words)))


def most_surprising(found: Surprise, words: Sequence[str]) -> int:
    """The place of the token that cost most; an unknown one only where all are."""
    return max(candidates(words), key=lambda at: float(found.nats[at]))


def titled(title: str) -> str:
    """A work's title: capitals only where they begin a word of weight, and Roman numbers."""
    if not title.isupper():
        return title or "the text"
    words = [word if re.fullmatch("[IVX]+[.,:;]?", word) else word.capitalize() for word in title.split()]
    return " ".join(word.lower() if i and word.lower() in SMALL else word for i, word in enumerate(words))


@claim
def passage_sentence(found: Surprise, before: int) -> str:
    """The passage in numbers."""
    led = f" It had read {counted(before, 'token')} before." if before else " It had read nothing before."
    first, n = int((found.rank == 1).sum()), len(found.nats)
    guessed = f"{first} of the {n} tokens {'was' if first == 1 else 'were'} its first guess."
    if n == 1:
        guessed = f"It was {'' if first else 'not '}its first guess."
    return (
        f"{'A' if n > 1 else 'The'} token costs {found.nats.mean():.2f} nats{' on average' if n > 1 else ''} here "
        f"(perplexity {in_words(found.perplexity)}), and {found.unread.mean():.2f} if only its frequency is known. "
        f"{guessed}{led}"
    )


@claim
def word_sentence(found: Surprise, words: Sequence[str], at: int, among: str) -> str:
    """What one token cost, and how far down the list of what it can say it stood, `among` what."""
    nats = float(found.nats[at])
    dearer = round(nats - float(found.unread[at]), 2)
    than = f"{abs(dearer):.2f} {'more' if dearer > 0 else 'less'} than" if dearer else "as much as"
    return (
        f"{called(words[at])}, token {at + 1}, cost {nats:.2f} nats, {than} by its frequency alone. The model gave it "
        f"probability {probability(float(np.exp(-nats)))}: rank {found.rank[at]:,} among {among}."
    )


def says(found: Surprise, words: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each token, for the pointer."""
    return tuple(
        f"{called(word)}: {nats:.2f} nats, rank {rank:,}. Likeliest: "
        + ", ".join(f"{names[token]} {p:.2f}" for token, p in zip(top[:3], ps[:3], strict=True))
        for word, nats, rank, top, ps in zip(
            words, found.nats, found.rank, found.likeliest, found.probability, strict=True
        )
    )


@claim
def growth_sentence(found: Growth) -> str:
    """What the first and the last tokens of a window cost."""
    loss = found.found
    ends = [give_or_take(loss.nats[i], loss.half[i], 2) for i in (0, -1)]
    last = loss.names[-1].replace("–", " to ")
    there = f", and one at {last} costs {ends[1]}" if len(loss.names) > 1 else ""
    return (
        f"The first token of a window costs {ends[0]} nats{there}. If only frequencies were known, a token would cost "
        f"{found.unread:.2f}."
    )


# --- repetition


@claim
def named(found: Repetition, labels: Sequence[str], on: str) -> str:
    """Which heads have a name, `on` which tokens that was measured: on others the same heads may look elsewhere."""
    names = [found.name(head) for head in found.heads]
    parts = []
    for name in NAMES:
        own = [label for label, each in zip(labels, names, strict=True) if each == name]
        if own:
            one = "an induction head" if name == INDUCTION else "a previous-token head"
            is_one = f"is {one}" if len(own) == 1 else f"are {one.split(' ', 1)[1]}s"
            parts.append(f"head{'s' * (len(own) > 1)} {listed(own)} {is_one}")
    if INDUCTION not in names:
        parts.insert(0, "no induction head has formed")
    return f"On {on}, {'; '.join(parts)}."


@claim
def head_sentence(found: Repetition, head: Head, label: str) -> str:
    """One head's scores, and what they are to be compared with."""
    i = found.heads.index(head)
    score, other, before = found.induction, found.unrepeated, found.previous
    return (
        f"Head {label} puts {interval(score.mean[i], score.half[i])} of its attention on the token after the first "
        f"occurrence, and {interval(other.mean[i], other.half[i])} on the same position if nothing is repeated. It "
        "puts "
        f"{interval(before.mean[i], before.half[i])} on the previous token. A head that looks evenly puts "
        f"{found.even[i]:.3f} on each."
    )


@claim
def drop_sentence(found: Repetition) -> str:
    """What the repetition saves, and what any second block would."""
    return (
        f"In a repeated block a token costs {_saved(found.drop())}; in a new block, {_saved(found.drop_of_another())}."
    )


def _saved(drop: Estimate) -> str:
    """ "0.18 ± 0.06 nats less", or how little can be told where the interval holds 0."""
    mean, half = float(drop.mean[0]), float(drop.half[0])
    if drop.low[0] <= 0 <= drop.high[0]:
        return f"as much as in the first, within {half:.2f} nats"
    return f"{abs(mean):.2f} ± {half:.2f} nats {'less' if mean > 0 else 'more'}"


def rule() -> str:
    """What a name asks for."""
    return (
        f"A head gets a name if its whole interval is above {LEAST:g} and {MARGIN:g} above an even head. For induction "
        f"it must also be {MARGIN:g} above the share without repetition."
    )


# --- distances


@claim
def distance_title(found: Distances, labels: Sequence[str]) -> str:
    """Which heads look nearest and which farthest, in tokens on average: all that as many tokens are written of."""
    away = dict(zip(labels, found.mean.mean.tolist(), strict=True))
    near = foremost({label: -tokens for label, tokens in away.items()}, "{:.1f}".format)
    far = foremost(away, "{:.1f}".format)
    low, high = (f"{away[each[0]]:.1f}" for each in (near, far))
    if low == high:
        who = f"Head {labels[0]} looks" if len(labels) == 1 else f"All {len(labels)} heads look"
        return f"{who} {low} tokens away on average."
    (nearest, several), (farthest, _) = heads_in_words(near), heads_in_words(far)
    return (
        f"{nearest} {'look' if several else 'looks'} nearest, {farthest[0].lower()}{farthest[1:]} farthest: "
        f"{low} and {high} tokens."
    )


@claim
def distance_sentence(found: Distances, head: Head, label: str) -> str:
    """One head's mean distance and reach, beside an even head's."""
    i = found.heads.index(head)
    mean = give_or_take(found.mean.mean[i], found.mean.half[i], 1)
    return (
        f"Head {label} looks {mean} tokens away on average, a head that looks evenly {found.even_mean[i]:.1f}. "
        f"{MOST:.0%} of its attention is at most {counted(int(found.reach[i]), 'token')} away."
    )
