"""The private parts of Streamlit's page that theme.css leans on are there: each of its selectors finds something."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Browser, expect

from dashboard.theme import style
from tests.kit.driving import PATIENCE

pytestmark = pytest.mark.browser

PLACES = ("heads", "inside", "information", "edits?edits=zero:decoder.0.self_attention.0")
"""Pages on which together every selector has something to find."""
SELECTORS = [
    selector.strip()
    for rule in re.findall(r"([^{}]+)\{[^{}]*\}", re.sub(r"</?style>", "", style(1)))
    for selector in re.split(r",\s+", rule)
]
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
    """The selectors that found something on one of the pages."""
    found: set[str] = set()
    context = chromium.new_context()
    context.add_init_script(f"({SEEN})({json.dumps(SELECTORS)})")
    for place in PLACES:
        page = context.new_page()
        page.goto(f"{address}/{place}")
        page.locator("[data-testid=stMain] h1").wait_for(timeout=PATIENCE)
        expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_attached()
        expect(page.locator(".st-key-health")).to_be_attached()
        found.update(page.evaluate("[...window.seenSelectors]"))
        page.close()
    context.close()
    return found


@pytest.mark.parametrize("selector", dict.fromkeys(SELECTORS))
def test_a_selector_of_the_style_sheet_finds_something(selector: str, seen: set[str]) -> None:
    assert selector in seen
