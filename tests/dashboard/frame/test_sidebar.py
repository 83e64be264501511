"""What stands in the sidebar of each page: what the page follows, and nothing else of the model."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.view.pages import PAGES
from tests.house.digests import lines
from tests.kit.pages import open_page

FOLLOWED = ("model", "step", "input")
"""What a page can follow; each with those before it."""
CONTROLS = {"model": "control-run", "step": "control-step", "input": "control-input"}
OTHERWISE = {"model": {"run": "reverse-sinusoidal"}, "step": {"step": "0"}, "input": {"input": "87654321"}}
OWN = [page for page in PAGES if not PAGES[page].imported]
OWN_FIELDS = {("bottleneck", "input")}
"""What stands on a page itself: its question is read by another model than the chosen one."""
SHOWN_BY = {"questions": {"asked": "3"}}
"""Where the usual view shows nothing of what is followed: one that does."""


def controls(app: AppTest) -> list[str]:
    """What the sidebar offers of the model."""
    widgets = [*app.sidebar.selectbox, *app.sidebar.select_slider, *app.sidebar.text_input, *app.sidebar.text_area]
    keys = {each.key for each in widgets}
    return [name for name in FOLLOWED if CONTROLS[name] in keys]


def page_lines(page: str, **view: str) -> list[str]:
    """All that stands on a page of a model, without where it comes from."""
    app = open_page(page, **{"run": "shakespeare" if PAGES[page].menu == "Text" else "reverse"} | view)
    return [line for line in lines(app.main, True) if not line.startswith("origin")]


@pytest.mark.parametrize("page", OWN)
def test_the_sidebar_offers_what_the_page_follows(page: str) -> None:
    follows = PAGES[page].follows
    found = controls(open_page(page, run="reverse" if PAGES[page].menu != "Text" else "shakespeare"))
    last = FOLLOWED.index(follows) + 1 if follows else 0
    wanted = [*FOLLOWED[:last]]
    assert found == ([name for name in wanted if name != "step"] if PAGES[page].menu == "Text" else wanted)


@pytest.mark.nightly
@pytest.mark.parametrize("page", [page for page in OWN if PAGES[page].menu != "Text"])
def test_a_page_follows_what_changes_it(page: str) -> None:
    """What stands on it is another with another model, step or input exactly where the page says that it follows."""
    view = SHOWN_BY.get(page, {})
    before, follows = page_lines(page, **view), PAGES[page].follows
    for name in FOLLOWED:
        changed = page_lines(page, **view, **OTHERWISE[name]) != before
        followed = name in FOLLOWED[: FOLLOWED.index(follows) + 1 if follows else 0]
        assert changed == (followed or (page, name) in OWN_FIELDS), name
