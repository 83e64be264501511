"""Tables: how high they are, and rows that can be ticked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import streamlit as st

HEAD, ROW = 38, 35
"""Pixels of a table's head and of a row."""
MOST_ROWS = 10
"""Rows to tick that are seen without scrolling."""


def height_of(rows: int, most: int) -> int:
    """Pixels of a table of so many rows, at most `most` of them without scrolling; of none, one stands empty."""
    return HEAD + ROW * min(most, max(1, rows))


def number_columns(three_digits: Sequence[str], whole: Sequence[str]) -> dict[str, Any]:
    """How numbers of a table are written: some with three digits, others as they are, thousands apart."""
    number = st.column_config.NumberColumn
    return {name: number(format="%.3f") for name in three_digits} | {name: number(format="localized") for name in whole}


def ticked_table(
    frame: Any,
    names: Sequence[str],
    ticked: Sequence[str],
    answer: Callable[[list[str]], None],
    *,
    key: str,
    mode: Literal["single-row", "single-row-required", "multi-row"],
    **options: Any,
) -> None:
    """A table of rows with names, of which some are ticked; what the reader ticks goes to `answer`.

    Of rows that share a name the first is ticked, and names that no row has are passed over.

    The browser sends every widget's state with each request, also with one of a live view that was on its way while the
    page was drawn: what it then says of these rows is what they were. So ticks that come from anywhere but the table
    itself (another part of the page, a link, the way back) make it a new one, and an old one is not listened to.
    """
    state = st.session_state
    rows = sorted({names.index(name) for name in ticked if name in names})
    now = (tuple(names), frozenset(names[row] for row in rows))
    number, shown = state.get(f"{key}-shown", (0, None))
    if shown != now:
        number += 1
        state[f"{key}-shown"] = (number, now)
    mine = f"{key}-{number}"
    state[mine] = {"selection": {"rows": rows, "columns": [], "cells": []}}

    def reported() -> None:
        current, shown = state[f"{key}-shown"]
        if current != number:
            return
        found = [names[row] for row in state[mine]["selection"]["rows"] if row < len(names)]
        if shown[1] != frozenset(found):
            state[f"{key}-shown"] = (number, (now[0], frozenset(found)))
            answer(found)

    with st.container(key=key):
        st.dataframe(
            frame,
            key=mine,
            on_select=reported,
            selection_mode=mode,
            hide_index=True,
            height=height_of(len(names), MOST_ROWS),
            **options,
        )
