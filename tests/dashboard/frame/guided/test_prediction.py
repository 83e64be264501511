"""Predict, then see: what is asked on which page, and that nothing is asked where nobody wants it."""

from __future__ import annotations

import pytest

from dashboard.components.payload import unpack
from dashboard.frame.guided.prediction import QUESTIONS, UNASKED, cover
from dashboard.view.pages import PAGES
from tests.kit.pages import link, open_page


def asked(app) -> dict | None:
    found = [each for each in app.main if "question" in (getattr(each, "key", "") or "")]
    styles = [each.value for each in app.get("html") if "data-predicted" in each.value]
    assert len(styles) == len(found)
    if not found:
        return None
    header, _ = unpack(bytes(found[0].proto.bytes))
    assert header["id"] in styles[0]
    return header


def test_nothing_is_asked_unless_one_wants_it_and_the_link_says_who_does() -> None:
    app = open_page("heads", run="reverse")
    assert asked(app) is None
    app.toggle(key="control-predict").set_value(True).run()
    assert asked(app) is not None
    assert link(app)["predict"] == "1"


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("page", "run", "kind"),
    [
        ("overview", "reverse", "bars"),
        ("accuracy", "reverse", "bars"),
        ("heads", "reverse", "cells"),
        ("film", "reverse", "words"),
        ("heads", "shakespeare", "cells"),
        ("overview", "shakespeare", "words"),  # a text has no right answer
    ],
)
def test_the_switch_asks_on_every_page(page: str, run: str, kind: str) -> None:
    header = asked(open_page(page, run=run, predict="1"))
    assert header is not None
    assert header["kind"] == kind


def test_pages_without_a_result_ask_nothing() -> None:
    assert set(UNASKED) <= set(PAGES)
    assert set(QUESTIONS) <= set(PAGES)
    for page in UNASKED:
        assert asked(open_page(page, predict="1")) is None


def test_a_step_asks_by_itself_until_one_explores() -> None:
    query = {"run": "reverse", "lecture": "attention", "lecture_step": "2"}
    header = asked(open_page("accuracy", **query))
    assert header is not None
    assert header["ask"].startswith("Eight random digits, the mark SEP")
    assert asked(open_page("accuracy", **query, exploring="1")) is None


def test_the_switch_stays_when_a_lecture_is_left() -> None:
    app = open_page("overview", run="reverse", lecture="attention", lecture_step="1", predict="1")
    app = next(each for each in app.button if each.key == "lecture-leave").click().run()
    assert link(app)["predict"] == "1"


def test_the_cover_hides_what_follows_until_it_is_answered() -> None:
    rules = cover("abc")
    assert rules.count('html:not([data-predicted="abc"])') == 2
    assert ":has(> .st-key-prediction) ~ *" in rules
    assert "st-key-lecture-words" in rules
