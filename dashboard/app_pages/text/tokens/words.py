"""Sentences of the page "Tokens and windows", made from its numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np

from dashboard.app_pages.text.tokens.cut import Cut
from transformer.foundation.claims import claim
from transformer.text.tokens import shown

ONE = {"words": "word", "characters": "character"}


def many(count: int, name: str) -> str:
    """ "1 token", "2 tokens"."""
    return f"{count:,} {name}{'s' * (count != 1)}"


@claim
def headline(cut: Cut) -> str:
    """How long the text is, and from how few of its tokens each is predicted, where it fills a window."""
    n = many(len(cut.tokens), "token")
    if not len(cut.places):
        return f"{n}: too few for a window of {cut.length}."
    return f"{n}: none is predicted from more than {cut.seen[-1]} before it."


def numbered(cut: Cut) -> str:
    """Where the numbers come from, and what is unknown."""
    vocabulary, counts = cut.vocabulary, Counter(cut.tokens)
    (often, times), *_ = counts.most_common(1)
    first = (
        f"The small numbers are ids: places in the vocabulary of {many(len(vocabulary.tokens), ONE[vocabulary.by])}, "
        "the most frequent first, from 0."
    )
    here = (
        f"This text has {many(len(counts), 'different token')}. None occurs more often than ‘{shown(often)}’: "
        f"{many(times, 'time')}."
    )
    unknown = int(cut.unknown.sum())
    if not unknown:
        return f"{first} {here} No token is unknown."
    are = "is" if unknown == 1 else "are"
    return f"{first} {here} {many(unknown, 'token')} {are} unknown (dashed) and read as ⟨unk⟩, id {vocabulary.unknown}."


def splitting(cut: Cut) -> str:
    """How a text is cut into such tokens."""
    if cut.vocabulary.by == "characters":
        return "Each character is a token, also a blank and a line end."
    return (
        "A token ends where a word begins or ends. What stands between two words, such as a comma with its blank, is "
        "one token."
    )


def made_here(cut: Cut, min_count: int, letters: int) -> str:
    """Where a vocabulary comes from that the run does not have."""
    known, by = len(cut.vocabulary.tokens), cut.vocabulary.by
    other = {"words": "characters", "characters": "words"}[by]
    occur = "occurs" if known == 1 else "occur"
    return (
        f"This model reads {other}, so its run has no vocabulary of {by}. This one is made by the same rule from the "
        f"{letters:,} characters of held-out text kept with the run: {many(known, ONE[by])} {occur} at least "
        f"{many(min_count, 'time')} in it."
    )


def windowed(cut: Cut) -> str:
    """How the tokens are cut again, and what is left over."""
    several = ", no token in two of them" if len(cut.places) > 1 else ""
    said = f"{many(len(cut.places), 'window')} of {cut.length} tokens{several}."
    if not cut.left_out:
        return f"{said} No token is left out."
    left = f"{many(cut.left_out, 'token')} {'stands' if cut.left_out == 1 else 'stand'} in no window (faint)."
    if len(cut.places) > 1 and cut.length % 2 == 0:
        why = ": so not all windows begin with a word, or all with a blank" if cut.vocabulary.by == "words" else ""
        return f"{said} {left} As in training, one token is left out after each window of even length{why}."
    return f"{said} {left}"


def shifted(cut: Cut, at: int) -> str:
    """The rows of a window: each place predicts the token that stands one place further."""
    read, predicted = cut.read[at], cut.predicted[at]
    name = cut.shown
    return (
        f"Window {at + 1}. At place 1 the model reads SEP and has to predict ‘{name(predicted[0])}’. At place 2 it "
        f"reads ‘{name(read[1])}’ and has to predict ‘{name(predicted[1])}’: the targets are the same tokens, "
        "shifted by one."
    )


def forgotten(cut: Cut) -> str:
    """What a window does not see of the text before it."""
    before = cut.places.mean()  # as many tokens of the text stand before a token as its place says, from 0
    last = int(cut.seen[-1])
    return (
        f"The first token of a window is predicted from SEP alone; the last, at place {cut.length}, from "
        f"{many(last, 'token')} of the text. On average a token in a window is predicted from {cut.seen.mean():.1f} "
        f"tokens, and {before:.1f} stand before it in the text."
    )


def lost_letters(lost: list[str]) -> str:
    """What of a typed text cannot be kept."""
    codes = list(dict.fromkeys(f"U+{ord(letter):04X}" for letter in lost))
    named = ", ".join(codes[:4]) + (" and others" if len(codes) > 4 else "")
    are = "was" if len(lost) == 1 else "were"
    return f"{many(len(lost), 'character')} that cannot be shown {are} left out: {named}."


def too_long(letters: int, most: int) -> str:
    return f"The text has {letters:,} characters. The first {most:,} are used."


def spoken(cut: Cut, first: int, end: int) -> str:
    """What the row of tokens shows, in a sentence."""
    left = int(np.sum(cut.window[first:end] < 0))
    return (
        f"Tokens {first + 1} to {end} of {len(cut.tokens)} with their ids; {int(cut.unknown[first:end].sum())} of them "
        f"are unknown and {left} stand in no window."
    )
