"""Outputs before and after a mask: the probability of each right token, and which answers change."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.app_pages.attention.masks.figures.probabilities import probability_dumbbells
from dashboard.components.plot import coloured, plot
from dashboard.figures.html.tokens import Token
from dashboard.models.model import Model
from dashboard.parts import claims
from dashboard.parts.tokens import tokens
from transformer.analysis.findings import Sample
from transformer.foundation.claims import claim

STILL = 0.005
"""A probability that moves by less is written with the same two digits, or the next."""


def said(model: Model, before: Sample, after: Sample) -> None:
    """The outputs of one question as strips, and the probability of each right token. Both samples know the truth."""
    assert before.truth is not None
    assert after.truth is not None
    answer = before.is_answer
    flipped = np.array(before.predicted) != np.array(after.predicted)
    was, now = before.truth[answer], after.truth[answer]
    targets = [target for target, counts in zip(before.targets, answer, strict=True) if counts]
    words = change_sentence(was, now, targets, flipped[answer])
    rows = {"before": strip(before), "after": strip(after, flipped)}
    tokens(rows, key="mask-tokens", alt=words)
    figure = coloured(probability_dumbbells, was, now, targets, flipped[answer], model.task.chance)
    plot(figure, key="probabilities", alt=words, height=240)
    st.caption(f"{words} A frame and a ≠ mark a prediction that flips.{claims.read(model)}")


def strip(seen: Sample, flipped: np.ndarray | None = None) -> list[Token]:
    """What is said at each token: right, wrong, or not to be known. Padding is left out."""
    line = []
    flips = np.zeros(len(seen.predicted), dtype=bool) if flipped is None else flipped
    for said, target, answer, flip in zip(seen.predicted, seen.targets, seen.is_answer, flips, strict=True):
        if target == "PAD":
            continue
        if not answer:
            line.append(Token(said, "open"))
        else:
            line.append(Token(said, "right" if said == target else "wrong", target, bool(flip)))
    return line


@claim
def change_sentence(before: np.ndarray, after: np.ndarray, targets: list[str], flipped: np.ndarray) -> str:
    """How many predictions flip, and where the right token's probability changes most; float and bool [output]."""
    flips = int(flipped.sum())
    verb = "flips" if flips == 1 else "flip"
    most = int(np.abs(after - before).argmax())
    change = after[most] - before[most]
    if abs(change) < STILL:
        return f"{flips} of {len(targets)} predictions {verb}. No right token's probability moves by {STILL:g} or more."
    return (
        f"{flips} of {len(targets)} predictions {verb}. The right token's probability "
        f"{'falls' if change < 0 else 'rises'} most at token {most + 1} of the answer ('{targets[most]}'): "
        f"{before[most]:.2f} before, {after[most]:.2f} after."
    )
