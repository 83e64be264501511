"""The cells of a drawn table, read back as numbers."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np

from tests.kit.numbers.rounding import tolerance


class Cells(HTMLParser):
    """The rows of every table: its label, and the texts of its cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def html(app: Any) -> str:
    return next(each.proto.body for each in app.get("html") if "<table" in each.proto.body)


def close(texts: list[str], expected: np.ndarray) -> None:
    """Every text is its number, rounded to the last digit shown."""
    assert len(texts) == len(expected)
    for text, number in zip(texts, expected, strict=True):
        digits = len(text.partition(".")[2])
        room = 0.5 * 10**-digits + tolerance(1 + abs(number))
        assert abs(float(text.replace("−", "-")) - number) <= room, (text, number)
