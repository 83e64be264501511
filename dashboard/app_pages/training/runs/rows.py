"""Which rows of the table of runs are shown: a page of those that match the filter, in an order of all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.app_pages.training.runs.columns import COLUMNS, NEWEST
from dashboard.app_pages.training.runs.settings import RunsSettings
from dashboard.parts.widgets import bound, bound_choice, controlled
from dashboard.view import session
from transformer.foundation.words import counted

A_PAGE = 100
"""Rows that are sent to the browser at most."""
FIRST = {"rows_page": 1}
"""What any other order or filter begins with."""


@dataclass(frozen=True)
class Page:
    """A page of the rows."""

    frame: pd.DataFrame
    first: int
    """The number of its first row among those that match, from 1."""
    matching: int
    all: int

    @property
    def is_part(self) -> bool:
        """Is anything left out?"""
        return len(self.frame) < self.all

    @property
    def number(self) -> int:
        """Which of the pages this is, from 1."""
        return (self.first - 1) // A_PAGE + 1

    @property
    def pages(self) -> int:
        return max(1, math.ceil(self.matching / A_PAGE))

    @property
    def words(self) -> str:
        """Which rows these are."""
        if not self.matching:
            return f"No run of {self.all:,} matches."
        rows = f"Runs {self.first:,} to {self.first + len(self.frame) - 1:,} of {self.matching:,}"
        return f"{rows}." if self.matching == self.all else f"{rows} that match, of {self.all:,} in all."


def page_of(frame: pd.DataFrame, words: str, by: str, ascending: bool, number: int) -> Page:
    """A page of a table, counted from 1; the last one where there are fewer. Rows without a value come last.

    A row matches if each of the words stands in it, in letters of any case.
    """
    rows, searched = frame, [name for name, each in COLUMNS.items() if each.searched]
    for word in words.casefold().split():
        found = [rows[column].str.casefold().str.contains(word, regex=False) for column in searched]
        rows = rows[pd.concat(found, axis=1).any(axis=1)]
    if by != NEWEST or ascending:
        rows = rows.sort_values(by, ascending=ascending, kind="stable", na_position="last", key=_without_case)
    first = A_PAGE * (min(number, max(1, math.ceil(len(rows) / A_PAGE))) - 1)
    return Page(rows.iloc[first : first + A_PAGE], first + 1, len(rows), len(frame))


def _without_case(column: pd.Series) -> pd.Series:
    return column.str.casefold() if pd.api.types.is_string_dtype(column) else column


def chosen_page(frame: pd.DataFrame, part: str) -> Page:
    """The page that the view names, under the controls by which it is chosen; of few rows all, without controls.

    `part` of the answers is what their accuracy is of.
    """
    mine = session.mine(RunsSettings)
    titles = {name: COLUMNS[name].heading(part) for name in (NEWEST, *COLUMNS)}
    if len(frame) > A_PAGE or (mine.rows_filter, mine.rows_by, mine.rows_ascending) != ("", "", False):
        words, by, order = st.columns([2, 1, 1], gap="medium", vertical_alignment="bottom")
        with words:
            bound(
                st.text_input,
                "Filter",
                "rows_filter",
                also=FIRST,
                placeholder="Words in the name, the change, the device or the status",
            )
        with by:
            bound_choice(
                st.selectbox, "Sort by", "rows_by", list(titles), NEWEST, also=FIRST, format_func=titles.__getitem__
            )
        with order:
            bound(st.toggle, "Ascending", "rows_ascending", also=FIRST)
    mine = session.mine(RunsSettings)
    page = page_of(frame, mine.rows_filter, mine.rows_by or NEWEST, mine.rows_ascending, mine.rows_page)
    if page.number != mine.rows_page:
        has = counted(page.pages, "page")
        session.notice(f"The table of runs has {has} here, and no page {mine.rows_page}; this is the last.")
        session.update(rows_page=page.number)
    return page


def turn_pages(page: Page) -> None:
    """Say which rows are shown, and let one turn to the others; nothing where all are."""
    if not page.is_part:
        return
    left, right = st.columns([1, 1], gap="medium", vertical_alignment="center")

    def pagination(_label: str, **options: Any) -> int:
        return st.pagination(page.pages, **options)

    with left:
        if page.pages > 1:
            controlled(
                pagination,
                "Page",
                key="rows-page",
                value=page.number,
                picked=lambda number: session.update(rows_page=number),
            )
    right.caption(page.words)
