"""On a phone: no page scrolls sideways, and axe-core finds nothing, alone or as a step of a lecture."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from dashboard.view.pages import PAGES
from tests.kit.driving import PATIENCE, SETTLED, violations

pytestmark = [pytest.mark.browser, pytest.mark.nightly]
WIDTH = 390
STREAMLITS_MENU = ("list:", "listitem:")
"""On a narrow screen the menus stand in the sidebar, in a list that Streamlit nests wrongly (1.67)."""
SIDEWAYS = "() => document.querySelector('[data-testid=stMain]').scrollWidth"
SOON = 5_000
"""Milliseconds for a figure to find its width after it was drawn: Plotly measures, then draws again."""


def check(page: Page, link: str) -> None:
    page.set_viewport_size({"width": WIDTH, "height": 844})
    page.goto(link)
    expect(page.locator("[data-test-script-state=running]")).to_have_count(0, timeout=PATIENCE)
    if "predict" in link or "lecture_step=1" in link:
        expect(page.locator(".al-prediction h2")).to_be_visible(timeout=PATIENCE)
    else:
        expect(page.get_by_role("heading", level=1).first).to_be_visible(timeout=PATIENCE)
    page.wait_for_function(SETTLED)
    with suppress(TimeoutError):
        page.wait_for_function(f"({SIDEWAYS})() === {WIDTH}", timeout=SOON)
    assert page.evaluate(SIDEWAYS) == WIDTH


@pytest.mark.parametrize("address_of_page", PAGES)
def test_no_page_scrolls_sideways(page: Page, address: str, address_of_page: str) -> None:
    run = "?run=shakespeare" if address_of_page in ("reading", "writing") else ""
    check(page, f"{address}/{address_of_page}{run}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "link",
    [
        "accuracy?run=reverse&predict=1",
        "heads?run=reverse&predict=1",
        "accuracy?run=reverse&lecture=masks&lecture_step=1",
        "heads?run=reverse&query=9&lecture=attention&lecture_step=4",
    ],
)
def test_no_question_and_no_step_does(page: Page, address: str, link: str, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    check(page, f"{address}/{link}")
    assert [each for each in violations(page) if not each.startswith(STREAMLITS_MENU)] == []
