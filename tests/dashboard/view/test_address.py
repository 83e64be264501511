"""Which address of the browser is read: one that the reader went to, and none that was written over meanwhile."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.runtime.scriptrunner_utils.exceptions import StopException

from dashboard.server import streamlit_private
from dashboard.view import clicks, session
from tests.kit.pages import open_page
from tests.kit.waiting import PATIENCE

OPENED, CHOSEN = "reverse", "reverse-aligned"


@pytest.mark.parametrize(
    ("back", "heard", "long_ago", "names", "shown"),
    [
        (False, False, False, "before", CHOSEN),
        (False, False, True, "before", OPENED),
        (False, True, False, "before", OPENED),
        (True, False, False, "before", OPENED),
        (False, True, True, "none", CHOSEN),
        (False, False, False, "another", OPENED),
    ],
)
def test_an_address_that_was_just_written_over_is_read_only_where_the_reader_went_back(
    back: bool, heard: bool, long_ago: bool, names: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that is sent before the browser hears of its new address names the one of before, until one names that.

    Or it names none, where it tells of several parts of the page. What it has not heard of is written once more.
    """
    app = open_page("questions", run=OPENED, live="0")
    before = dict(app.query_params)
    app.selectbox(key="control-run").set_value(CHOSEN).run()
    assert app.query_params["run"] == CHOSEN
    monkeypatch.setattr(session, "went_back", lambda: back)
    monkeypatch.setattr(session, "JUST_WRITTEN", 0.0)
    monkeypatch.setattr(session, "UNHEARD", 0.0 if long_ago else PATIENCE)
    if heard:
        app.run()
    named = {"before": before, "none": {}, "another": before | {"live": "1"}}[names]
    app.query_params.clear()
    for name, value in named.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    assert app.session_state["settings"].run == shown
    assert app.query_params["run"] == shown


@pytest.mark.parametrize(("back", "shown"), [(False, OPENED), (True, CHOSEN)])
def test_back_is_followed_whatever_was_clicked_before(back: bool, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A click in a part whose drawing the next request ends is known to the view already."""
    app = open_page("questions", run=OPENED, live="0")
    app.session_state["touched"] = True
    monkeypatch.setattr(session, "went_back", lambda: back)
    app.query_params["run"] = CHOSEN
    app.run()
    assert app.session_state["settings"].run == shown


class State(SimpleNamespace):
    """A session's state."""

    def pop(self, name: str, default: object) -> object:
        return vars(self).pop(name, default)


@pytest.mark.parametrize(("asked", "key"), [(None, "touched"), (["a part"], "write")])
def test_a_click_in_a_part_leaves_the_next_address_to_be_read(
    asked: list[str] | None, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert streamlit_private.draws_a_part.is_there()
    run = SimpleNamespace(fragment_ids_this_run=asked)
    monkeypatch.setattr(script_run_context, "get_script_run_ctx", lambda **_: run)
    monkeypatch.setattr(clicks.st, "session_state", state := State(touched=True))
    clicks.end_part()
    assert vars(state) == {key: True}


def test_a_trained_model_is_shown_also_where_the_run_that_takes_it_over_is_broken_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a request for everything, which ends a run of a part wherever that looks at the session."""
    app = open_page("questions", run=OPENED, live="0")
    app.session_state["watched"] = CHOSEN
    with monkeypatch.context() as patched:

        def break_off(*_: object) -> None:
            raise StopException

        patched.setattr(session, "look_at_last_step", break_off)
        app.run()
        assert app.session_state["settings"].run == OPENED
    app.run()
    assert not app.exception
    assert app.session_state["settings"].run == CHOSEN
