"""How a model of a text learned: held-out perplexity and the habits of its heads, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dashboard.parts.heads import PLACES, habits
from dashboard.parts.text import course, over
from transformer.analysis.film.film import Film
from transformer.analysis.findings import Head
from transformer.text.perplexity import perplexity
from transformer.text.perplexity import said as in_words

Metrics = Sequence[Mapping[str, Any]]


def headline(metrics: Metrics) -> str:
    """How far perplexity fell, in a sentence; empty where it was not measured twice."""
    steps, nats = course(metrics)
    if len(steps) < 2:
        return ""
    first, last = (in_words(perplexity(value)) for value in (nats[0], nats[-1]))
    verb = "falls" if nats[-1] < nats[0] else "rises"
    read = f", on {basis}" if (basis := over(metrics)) else ""
    return f"Perplexity {verb} from {first} at step {steps[0]} to {last} at step {steps[-1]}{read}."


def worse_than_even(metrics: Metrics, tokens: int) -> str:
    """Why a perplexity may be above the number of tokens, in a sentence; empty where the first is not."""
    steps, nats = course(metrics)
    if len(steps) < 2 or perplexity(nats[0]) <= tokens:
        return ""
    return (
        f"At step {steps[0]} the model is worse than an even guess among the {tokens:,} tokens between which it "
        f"chooses: that would have perplexity {tokens:,}."
    )


def kept_habits(film: Film) -> dict[str, dict[Head, np.ndarray]]:
    """Every head's share on each of PLACES, picture after picture, on the passage that the film shows."""
    heads = [Head(site, i) for site, reading in film.readings.items() for i in range(reading.levels.shape[1])]
    rows = {
        head: [habits(film.readings[head.site].pattern(i)[head.index]) for i in range(len(film.pictured))]
        for head in heads
    }
    return {name: {head: np.array([row[name] for row in rows[head]]) for head in heads} for name in PLACES}


def most_looked_at(film: Film) -> tuple[str, dict[Head, np.ndarray]]:
    """Of PLACES the one that a head looks at most in the end, and each head's share on it; "" if none has a choice."""
    shares = kept_habits(film)
    ends = {name: max((share[-1] for share in each.values()), default=np.nan) for name, each in shares.items()}
    if np.isnan(list(ends.values())).all():
        return "", {}
    name = max(ends, key=lambda each: np.nan_to_num(ends[each], nan=-1))
    return PLACES[name], shares[name]
