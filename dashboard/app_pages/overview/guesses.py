"""The guesses of a model of a text, token by token, and the likeliest alternatives for one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.overview.figures import guesses_strip
from dashboard.components.plot import coloured, plot
from dashboard.components.sheet import Axis, Series, sheet
from dashboard.figures.kit.numbers import small
from dashboard.figures.lens import tokens_bars
from dashboard.models.cache import cached
from dashboard.models.model import Model
from dashboard.parts import claims, waiting
from dashboard.parts.prose import plain
from dashboard.parts.text import counted_tokens
from dashboard.view import session
from transformer.analysis.findings import Sample
from transformer.foundation.claims import claim

if TYPE_CHECKING:
    from transformer.tasks import Question


MOST_TOKENS = 48
"""Tokens of a passage that are shown on the first screen."""


@claim
def headline(sample: Sample) -> str:
    """How many words of the passage are guessed, in a sentence, and how much of what stands between them."""
    return f"It guesses {counted_tokens(sample.right, sample.targets)}."


def strip(sample: Sample, *, key: str) -> None:
    """The passage, each token with its guess."""
    begin = slice(MOST_TOKENS)
    tokens, guesses, shares = sample.targets[begin], sample.predicted[begin], sample.confidence[begin]
    places = (Axis("position", np.arange(1, len(tokens) + 1), tokens),)
    series = [
        Series("token", np.array(tokens, dtype=str), places),
        Series("guess", np.array(guesses, dtype=str), places, {"probability": shares.astype(np.float32)}),
    ]
    many = len(sample.targets)
    note = f"The first {MOST_TOKENS} of {many} tokens. " if many > MOST_TOKENS else ""
    words = (
        f"{note}The upper line is the text. Below each token is the guess that the model made from the tokens before "
        "it; ✓ means that the guess was right."
    )
    html = coloured(guesses_strip, tokens, guesses, shares)
    sheet(html, series, key=key, alt=headline(sample), note=note)
    st.caption(words)


def alternatives(model: Model, question: np.ndarray, sample: Sample, *, key: str, height: int) -> None:
    """The likeliest tokens at the query that the view names, or at the last."""
    named = session.settings().query
    place = len(question) - 1 if named is None or named > len(question) else named - 1
    if session.first_look():
        waiting.hourglass("Working out its guesses …")
        return
    tokens, shares = likeliest(model, question)
    listed, weights, target = tokens[place].tolist(), shares[place], int(question[place])
    if target not in listed:
        assert sample.truth is not None
        listed, weights = [*listed, target], np.append(weights, sample.truth[place])
    names = [model.task.vocabulary[token] for token in listed]
    whole = len(shares[place]) == model.task.d_vocab
    words = best_guess(
        sample, place, dict(zip(names, weights.tolist(), strict=True)), 0 if whole else len(shares[place])
    )
    st.markdown(f"**{plain(words)}**")
    figure = coloured(tokens_bars, weights, names, listed.index(target))
    plot(figure, key=key, alt=words, height=height)
    st.caption(
        "The bars are the likeliest next tokens; ✓ marks the one in the text. Click a row of the pattern "
        "to see another place."
    )


@claim
def best_guess(sample: Sample, place: int, weights: Mapping[str, float], listed: int) -> str:
    """The likeliest token after a place, from 0, and what the text has there; where no digit tells several apart, all.

    `weights` has the probabilities of the likeliest, so many as are `listed` where there are more, and of the text's.
    """
    best = claims.foremost(weights, small)
    guess, each = ("guess is", "") if len(best) == 1 else ("guesses are", " each")
    return (
        f"After '{sample.read[place]}' at {place + 1} its best {guess} {claims.tokens_in_words(best, listed)}, with "
        f"probability {small(weights[best[0]])}{each}. The text goes on with '{sample.targets[place]}', which has "
        f"{small(weights[sample.targets[place]])}."
    )


@cached(64)
def likeliest(model: Model, question: Question) -> tuple[np.ndarray, np.ndarray]:
    """The likeliest tokens at each position and their probabilities: int and float [position, listed]."""
    from transformer.analysis.stream.lens import alternatives

    return alternatives(model.network(), model.task, question)
