"""Rows that can be ticked: a tick is answered, and what the browser says late of an older table is not."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.parts.tables import HEAD, ROW, height_of


def page() -> None:
    """Three rows; more than two ticks are refused, and another part of the page may tick as well."""
    import pandas as pd
    import streamlit as st

    from dashboard.parts.tables import ticked_table

    state = st.session_state
    names = state.setdefault("names", ["a", "b", "c"])
    ticked = state.setdefault("ticked", ["a"])
    state.setdefault("answers", [])

    def answer(found: list[str]) -> None:
        state.answers.append(found)
        if len(found) <= 2:
            state.ticked = found

    ticked_table(pd.DataFrame({"name": names}), names, ticked, answer, key="table", mode="multi-row")


@pytest.fixture
def app() -> AppTest:
    return AppTest.from_function(page)


def report(app: AppTest, table: str, rows: list[int]) -> AppTest:
    """What the browser sends with a request, of a table that it shows or has shown."""
    states = app._tree.get_widget_states()
    states.widgets.add(id=table, string_value=json.dumps({"selection": {"rows": rows, "columns": [], "cells": []}}))
    app._run(states)
    assert not app.exception
    return app


def shown(app: AppTest) -> str:
    return app.dataframe[0].proto.id


def painted(app: AppTest) -> list[int]:
    """The rows that the server tells the browser to tick."""
    return json.loads(app.dataframe[0].proto.selection_state)["selection"]["rows"]


def test_a_tick_is_answered_once_and_the_table_stays(app: AppTest) -> None:
    table = shown(app.run())
    for _ in range(2):
        report(app, table, [2, 0])
        assert app.session_state.answers == [["c", "a"]]
        assert shown(app) == table
    report(app, table, [])
    assert app.session_state.answers == [["c", "a"], []]


def test_what_was_ticked_already_is_no_answer(app: AppTest) -> None:
    report(app.run(), shown(app), [0])
    assert app.session_state.answers == []


@pytest.mark.parametrize(("name", "value"), [("ticked", ["b"]), ("names", ["d", "a", "b", "c"])])
def test_an_older_table_is_not_listened_to(app: AppTest, name: str, value: list[str]) -> None:
    old = shown(app.run())
    app.session_state[name] = value
    new = shown(app.run())
    assert new != old
    report(app, old, [2])
    assert app.session_state.answers == []
    assert shown(app) == new
    report(app, new, [2])
    assert app.session_state.answers == [["c"] if name == "ticked" else ["b"]]


def test_a_refused_tick_is_taken_back_by_a_new_table(app: AppTest) -> None:
    table = shown(app.run())
    report(app, table, [0, 1, 2])
    assert app.session_state.answers == [["a", "b", "c"]]
    assert app.session_state.ticked == ["a"]
    assert shown(app) != table
    assert painted(app) == [0]


def test_of_rows_that_share_a_name_the_first_is_ticked(app: AppTest) -> None:
    app.session_state["names"] = ["b", "a", "a"]
    assert painted(app.run()) == [1]
    report(app, shown(app), [2])
    assert app.session_state.answers == []


def test_a_name_that_no_row_has_is_passed_over(app: AppTest) -> None:
    app.session_state["ticked"] = ["x"]
    table = shown(app.run())
    assert painted(app) == []
    report(app, table, [])
    assert app.session_state.answers == []


def test_rows_that_are_not_there_are_passed_over(app: AppTest) -> None:
    report(app.run(), shown(app), [1, 7])
    assert app.session_state.answers == [["b"]]


def test_a_table_is_as_high_as_its_rows_up_to_a_limit() -> None:
    assert [height_of(rows, 3) for rows in (0, 1, 3, 9)] == [HEAD + ROW * seen for seen in (1, 1, 3, 3)]
