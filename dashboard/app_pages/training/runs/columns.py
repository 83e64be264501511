"""The columns of the table of runs: what each says of a run, and how it is drawn. One is an entry of `COLUMNS`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import streamlit as st

from transformer.training.listing import Entry

LETTER, WIDEST = 7, 1200
"""Pixels of a letter in the table, and of its widest column."""
NEWEST = "created"
"""The column by which the rows are sorted where nothing is said of it."""


class Subject(NamedTuple):
    """What a row is about."""

    run: Entry
    last: Mapping[str, Any]
    """What was measured last in its training."""
    changed: str
    """What differs from the run before it with the same task."""


@dataclass(frozen=True)
class Column:
    """One column. In its words `{part}` is the part of the answers that accuracy is of, `{Part}` begins a title."""

    title: str
    value: Callable[[Subject], Any]
    kind: str = ""
    """The type of numbers that may be missing: "Int64" or "float64"."""
    searched: bool = False
    """Are the words of a filter looked for in it?"""
    fitted: bool = False
    """Is it as wide as its longest text?"""
    draw: Callable[..., Any] = st.column_config.TextColumn
    options: Mapping[str, Any] = field(default_factory=dict)
    """How it is drawn: width, format, help."""

    def heading(self, part: str) -> str:
        """Its title, where accuracy is of this part."""
        return self.title.format(part=part, Part=part.capitalize())

    def config(self, part: str, texts: Sequence[str]) -> Any:
        """How Streamlit draws it; `texts` are what stands in it, on all pages."""
        options = dict(self.options)
        if "help" in options:
            options["help"] = options["help"].format(part=part)
        if self.fitted:
            options["width"] = min(WIDEST, 40 + LETTER * max(map(len, texts), default=0))
        return self.draw(self.heading(part), **options)


def _number(value: Any, digits: int | None = None) -> float | int | None:
    """What a run folder says, to so many digits, if it is a number at all."""
    good = isinstance(value, int | float) and math.isfinite(value)
    return None if not good else value if digits is None else round(value, digits)


def _moment(created: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(created)
    except (ValueError, OverflowError, OSError):
        return None


NUMBER = st.column_config.NumberColumn
COLUMNS = {
    "name": Column("Run", lambda each: each.run.name, searched=True, options={"width": 190}),
    "accuracy": Column(
        "{Part}",
        lambda each: None if each.run.config.task.text else _number(each.run.second_half),
        "float64",
        draw=NUMBER,
        options={"format": "%.3f", "help": "Accuracy of the {part}, on 4,096 fresh sequences"},
    ),
    "perplexity": Column(
        "Perplexity",
        lambda each: _number(each.run.perplexity, 1),
        "float64",
        draw=NUMBER,
        options={
            "format": "localized",
            "help": "Of a run that reads a text: measured on all of the text that was held out",
        },
    ),
    "solved": Column(
        "Solved at",
        lambda each: _number(each.last.get("step") if each.last.get("solved") else None),
        "Int64",
        draw=NUMBER,
        options={
            "format": "localized",
            "help": "The step at which a run had right all that can be known under its mask, in the share that its "
            "settings ask for (“solved at”). Where lengths vary or an answer can be known in part, that is measured "
            "against the best guess.",
        },
    ),
    "steps": Column(
        "Steps", lambda each: _number(each.last.get("step", 0)), "Int64", draw=NUMBER, options={"format": "localized"}
    ),
    "seconds": Column(
        "Seconds",
        lambda each: _number(each.last.get("seconds", 0.0)),
        "float64",
        draw=NUMBER,
        options={"format": "%.1f", "help": "Spent on training"},
    ),
    "device": Column("Device", lambda each: each.run.device, searched=True, options={"width": 110}),
    "status": Column("Status", lambda each: each.run.state.status, searched=True),
    NEWEST: Column(
        "Created",
        lambda each: _moment(each.run.created),
        draw=st.column_config.DatetimeColumn,
        options={"format": "YYYY-MM-DD HH:mm", "width": 150},
    ),
    "changed": Column(
        "Changed",
        lambda each: each.changed,
        searched=True,
        fitted=True,
        options={"help": "What differs from the run before it with the same task"},
    ),
}
"""In the order of the table. The rows can be sorted by each."""
