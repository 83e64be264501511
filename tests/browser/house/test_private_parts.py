"""The private parts of Streamlit's page that our style sheet and scripts lean on are there, each by its name."""

from __future__ import annotations

import json
import re
import time

import pytest
from playwright.sync_api import Browser

from dashboard.theme import style
from tests.kit.driving import PATIENCE

pytestmark = pytest.mark.browser

PLACES = ("heads", "inside", "information", "edits?edits=zero:decoder.0.self_attention.0")
"""Pages on which together every selector has something to find."""
SELECTORS = [
    selector.strip().replace(":hover", "")
    for rule in re.findall(r"([^{}]+)\{[^{}]*\}", re.sub(r"</?style>", "", style(1)))
    for selector in re.split(r",\s+", rule)
]
"""Of theme.css."""
DRAWN_HTML, RERUNNING = ".st-key-inside-numbers .stHtml", "[data-test-script-state=running]"
"""Of components/web/kit/streamlit_private.js."""
SEEN = """(selectors) => {
  window.seenSelectors = new Set();
  const look = () => {
    for (const each of selectors) if (document.querySelector(each)) window.seenSelectors.add(each);
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true, attributes: true });
}"""
"""Notes what was found at any moment: a skeleton stands only until its component has come."""


@pytest.fixture(scope="module")
def seen(chromium: Browser, address: str) -> set[str]:
    """The selectors that found something on one of the pages, all of them or those found within PATIENCE."""
    wanted, found = {*SELECTORS, DRAWN_HTML, RERUNNING}, set()
    context = chromium.new_context()
    context.add_init_script(f"({SEEN})({json.dumps(sorted(wanted))})")
    pages = [context.new_page() for _ in PLACES]
    for page, place in zip(pages, PLACES, strict=True):
        page.goto(f"{address}/{place}")
    deadline = time.monotonic() + PATIENCE / 1000
    while found != wanted and time.monotonic() < deadline:
        for page in pages:
            found.update(page.evaluate("[...window.seenSelectors]"))
            page.wait_for_timeout(100)
    context.close()
    return found


@pytest.mark.parametrize("selector", dict.fromkeys(SELECTORS))
def test_a_selector_of_the_style_sheet_finds_something(selector: str, seen: set[str]) -> None:
    assert selector in seen


def test_what_st_html_drew_is_found_by_its_class(seen: set[str]) -> None:
    assert DRAWN_HTML in seen


def test_the_page_says_that_a_rerun_is_under_way(seen: set[str]) -> None:
    assert RERUNNING in seen
