"""The model's own output before and after a change: the likeliest words, and how far each position moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.your_model.ablation import words
from dashboard.components.plot import coloured, plot
from dashboard.figures.accuracy import position_bars
from dashboard.figures.html.tokens import Token
from dashboard.models.imported import Look
from dashboard.parts.tokens import tokens

if TYPE_CHECKING:
    from transformer.capturing.foreign import Foreign

MOST_WORDS = 16
"""Positions whose words are shown, the last of the input."""


def output(foreign: Foreign, before: Look, after: Look | None) -> None:
    """What it says as it is, and what it says changed; `after` is None where nothing is changed."""
    answer = before.answer
    if answer is None:
        st.caption("What this model returns is neither logits nor one vector a token, so its output is not compared.")
        return
    if answer.kind == "logits" and len(answer.values) == len(before.given.names):
        _words(foreign, before, after)
    if after is None or after.answer is None:
        return
    if said := words.amount_sentence(before, after):
        st.markdown(f"**{said}**")
    moved = words.shift(before, after)
    if moved is not None and len(moved) > 1:
        _bars(before, moved, said)


def _words(foreign: Foreign, before: Look, after: Look | None) -> None:
    """The likeliest word at each of the last positions, and which of them are others after the change."""
    assert before.answer is not None
    first = before.answer.values.argmax(axis=1)
    start = max(0, len(first) - MOST_WORDS)
    lines = {
        "reads": [Token(name) for name in before.given.names[start:]],
        "says": [Token(foreign.word(int(token))) for token in first[start:]],
    }
    said = f"The likeliest word at each of {len(first) - start} positions."
    if after is not None and after.answer is not None:
        last = after.answer.values.argmax(axis=1)
        lines["then"] = [
            Token(foreign.word(int(token)), flipped=bool(token != own))
            for token, own in zip(last[start:], first[start:], strict=True)
        ]
        said = words.flips_sentence(before, after)
    tokens(lines, key="imported-words", alt=said)
    shown = f" The last {MOST_WORDS} positions are shown." if start else ""
    st.caption(f"{said}{shown}")


def _bars(before: Look, moved: np.ndarray, said: str) -> None:
    assert before.answer is not None
    unit, _ = words.MEASURE[before.answer.kind]
    names = before.given.names if len(before.given.names) == len(moved) else [str(1 + i) for i in range(len(moved))]
    figure = coloured(
        position_bars,
        moved,
        names,
        [
            f"'{name}' at {1 + i}: {words.amount(value)} {unit}"
            for i, (name, value) in enumerate(zip(names, moved, strict=True))
        ],
        title=f"change, {unit}",
        against=(0.0, "unchanged"),
        across="position: the token read there",
    )
    plot(figure, key="imported-change", alt=said, height=260)
