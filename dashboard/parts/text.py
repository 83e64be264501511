"""What reading a text costs a model, by place and by head, in nats; perplexity on held-out text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from dashboard.components.plot import coloured
from dashboard.components.sheet import Axis, Series, sheet
from dashboard.figures.html.tinted_text import tinted_text
from dashboard.figures.kit.numbers import between, signed
from dashboard.parts.claims import foremost
from dashboard.parts.prose import plain
from transformer.analysis.accuracy.windows import ByPlace
from transformer.foundation.claims import claim
from transformer.foundation.words import listed
from transformer.text.perplexity import perplexity, said
from transformer.text.perplexity import said as in_words

if TYPE_CHECKING:
    from transformer.analysis.interventions.effects import Said


MOST_NATS, MOST_CHANGE = 10.0, 3.0
"""Nats, and a change of nats, at which a token has the full colour."""
NAMED = 3
"""Tokens that are named one by one; more are counted."""


def sentences(found: ByPlace) -> list[str]:
    """What the pointer says of each stretch."""
    rows = zip(found.names, found.nats, found.half, found.right, found.low, found.high, strict=True)
    return [
        f"place {name}: {nats:.3f}{f' ± {half:.3f}' if half == half else ''} nats a token, perplexity "
        f"{in_words(perplexity(nats))}; {right:.3f} right, {between(low, high)}"
        for name, nats, half, right, low, high in rows
    ]


def counted_tokens(which: np.ndarray, tokens: Sequence[str]) -> str:
    """ "12 of 20 words, and 5 of 19 blanks, line ends and marks": how many tokens of each kind are `which`, bool."""
    word = np.array([any(letter.isalnum() for letter in token) for token in tokens], dtype=bool)
    named = "word" if any(len(token) > 1 for token in tokens) else "letter"
    kinds = ((word, named, f"{named}s"), (~word, "blank, line end or mark", "blanks, line ends and marks"))
    return ", and ".join(
        f"{which[kind].sum()} of {kind.sum()} {one if kind.sum() == 1 else several}"
        for kind, one, several in kinds
        if kind.any()
    )


def passage(first: Said, last: Said | None, *, key: str) -> None:
    """A passage, each token tinted by what it costs; or, after a change, by what it costs more or less."""
    cost = first.nats if last is None else last.nats - first.nats
    most = MOST_NATS if last is None else MOST_CHANGE
    words = [_priced(first, last, place) for place in range(len(first.targets))]
    ends = ("0 nats", f"{most:g} nats or more") if last is None else (f"{most:g} nats less", f"{most:g} nats more")
    html = coloured(tinted_text, first.targets, cost, words, most=most, ends=ends, signed=last is not None)
    said = passage_sentence(first, last)
    axis = (Axis("position", np.arange(1, len(cost) + 1), first.targets),)
    series = [Series("before", first.nats, axis), *([] if last is None else [Series("after", last.nats, axis)])]
    sheet(html, series, key=key, alt=said)
    st.caption(f"{plain(said)} Each token is predicted from the tokens of the text before it.")


@claim
def passage_sentence(first: Said, last: Said | None) -> str:
    """What a passage costs, or what a change does to it; and the tokens where that is most, as it is written."""
    if last is None:
        said = f"It guesses {counted_tokens(first.right, first.targets)}, at {first.nats.mean():.2f} nats a token."
        return f"{said}{_surprise_most(first.targets, first.nats)}"
    changed = np.array(first.tokens) != np.array(last.tokens)
    said = (
        f"The guess changes for {counted_tokens(changed, first.targets)}. A token costs "
        f"{first.nats.mean():.2f} nats before and {last.nats.mean():.2f} after."
    )
    return f"{said}{_change_most(first.targets, last.nats - first.nats)}"


def _surprise_most(tokens: Sequence[str], cost: np.ndarray) -> str:
    """Which tokens of several surprise most; behind a sentence, so with a blank before it."""
    who, several = _furthest(tokens, cost)
    if not who:
        return ""
    most = f"{cost.max():.1f} nats"
    return f" {who} surprise most, with {most} each." if several else f" {who} surprises most, with {most}."


def _change_most(tokens: Sequence[str], change: np.ndarray) -> str:
    """Which tokens of several change most, up or down."""
    most = float(change[np.abs(change).argmax()])
    if f"{abs(most):.1f}" == "0.0":
        return " The cost of no token changes by as much as 0.05 nats."
    who, several = _furthest(tokens, np.abs(change))
    if not who:
        return ""
    if several:
        return f" {who} change most, by {abs(most):.1f} nats each."
    return f" {who} changes most, by {signed(most, 1, plus=True)} nats."


def _furthest(tokens: Sequence[str], values: np.ndarray) -> tuple[str, bool]:
    """The tokens of the greatest value as it is written, in words, and are they several? Empty where that is all."""
    level = foremost(dict(enumerate(values.tolist())), "{:.1f}".format)
    if len(level) == len(tokens):
        return "", False
    if len(level) > NAMED:
        return f"{len(level)} tokens", True
    return listed([f"‘{tokens[place]}’ at {place + 1}" for place in level]), len(level) > 1


def _priced(first: Said, last: Said | None, place: int) -> str:
    """What the pointer says of one token."""
    said = f"{place + 1}: {first.targets[place]}, {first.nats[place]:.2f} nats (p = {first.truth[place]:.3g})"
    if last is not None:
        said += f", then {last.nats[place]:.2f} nats (p = {last.truth[place]:.3g})"
    guess = first if last is None else last
    return f"{said}; likeliest {guess.tokens[place]}, {guess.confidence[place]:.3g}"


# --- how well what was held out of a text is read, and how much of it: each perplexity is of some windows, or of all

SEVERAL = (
    "Perplexity is e to the mean of the nats. A model with perplexity 20 is as unsure as somebody who must "
    "choose among 20 equally likely tokens. One model has several perplexities, because each is measured on other "
    "tokens. The menus, the table of runs and “It reads” show the one of all held-out text, in windows of the trained "
    "length. During a training only a few windows are read. A page that measures while you wait reads as many windows "
    "as fit into a moment, at the length chosen there; a shorter window tells the model less. Before training a "
    "perplexity may be above the number of tokens in the vocabulary. Such a model finds the right tokens less likely "
    "than an even guess would."
)
"""Where perplexity is explained, once for all pages; beside each stands what it is of."""


def windows(many: int, length: int) -> str:
    """ "16 windows of 512 held-out tokens": what was read."""
    return f"{many:,} window{'s' * (many != 1)} of {length:,} held-out tokens"


def whole(evaluation: Mapping[str, Any]) -> str:
    """ "perplexity 21.1 over 161,792 held-out tokens, in windows of 512": what was measured when a run had ended."""
    over = f"{evaluation['read']:,} held-out tokens, in windows of {len(evaluation['positions']):,}"
    return f"perplexity {said(evaluation['perplexity'])} over {over}"


def course(metrics: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """The steps at which it was read, int [measurement], and what a token cost, nats, float [measurement]."""
    found = [(line["step"], line["held_out_loss"]) for line in metrics if "held_out_loss" in line]
    steps, nats = zip(*found, strict=True) if found else ((), ())
    return np.array(steps, dtype=np.int64), np.array(nats, dtype=np.float64)


def over(metrics: Sequence[Mapping[str, Any]]) -> str:
    """What was read at each of these steps; empty before the first, and where a run does not say it."""
    lines = (line for line in metrics if "held_out_loss" in line and "probed" in line)
    line = next(lines, None)
    return "" if line is None else windows(line["probed"], len(line["accuracy"]))


def newest(metrics: Sequence[Mapping[str, Any]]) -> str:
    """ "perplexity 48.1 on 16 windows of 512 held-out tokens", as it was measured last; empty before."""
    _, nats = course(metrics)
    if not len(nats):
        return ""
    return f"perplexity {said(perplexity(nats[-1]))} on {over(metrics) or 'what was held out'}"
