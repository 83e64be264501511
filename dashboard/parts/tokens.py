"""Rows of tokens on a page, and what they say to be taken along: the token, its verdict, what would be right."""

from collections.abc import Mapping, Sequence

import numpy as np

from dashboard.components.origin import Maker
from dashboard.components.plot import coloured
from dashboard.components.sheet import Axis, Series, sheet
from dashboard.figures.html.tokens import Token, token_strip


def tokens(
    rows: Mapping[str, Sequence[Token]], *, key: str, alt: str, note: str = "", makers: Sequence[Maker] | None = None
) -> None:
    """A line of tokens for each name; `alt` says in a sentence what they show, `note` what is left out.

    `makers` says who wrote them, where it was not the page's model.
    """
    series = [token_series(name, line) for name, line in rows.items()]
    sheet(coloured(token_strip, rows), series, key=key, alt=alt, note=note, makers=makers)


def token_series(name: str, line: Sequence[Token]) -> Series:
    """Texts [position]; beside them each one's verdict and the right answer, empty where nobody can know it."""
    texts = np.array([token.text for token in line], dtype=str)
    judged = any(token.verdict != "given" for token in line)
    verdicts = {
        "verdict": np.array([token.verdict for token in line], dtype=str),
        "answer": np.array([token.answer or "" for token in line], dtype=str),
    }
    return Series(name, texts, (Axis("position", np.arange(1, len(line) + 1)),), verdicts if judged else {})
