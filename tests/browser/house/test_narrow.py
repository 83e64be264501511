"""On a phone, in both themes: no page and no step of a lecture scrolls sideways, and axe-core finds nothing there."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from dashboard.lectures.shelf import lectures
from dashboard.view.pages import PAGES
from tests.kit.driving import PATIENCE, SETTLED, violations
from tests.kit.waiting import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.nightly]
WIDTH = 390
STREAMLITS_MENU = ("list:", "listitem:")
"""On a narrow screen the menus stand in the sidebar, in a list that Streamlit nests wrongly (1.67)."""
SIDEWAYS = "() => document.querySelector('[data-testid=stMain]').scrollWidth"
STEPS = [(name, number) for name, each in lectures().files.items() for number in range(1, len(each.steps) + 1)]


def check(page: Page, link: str, scheme: Literal["light", "dark"], *, asks: bool = False) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": WIDTH, "height": 844})
    page.goto(link)
    expect(page.locator("[data-test-script-state=running]")).to_have_count(0, timeout=PATIENCE)
    if asks:
        expect(page.locator(".al-prediction h2")).to_be_visible(timeout=PATIENCE)
    else:
        expect(page.get_by_role("heading", level=1).first).to_be_visible(timeout=PATIENCE)
    page.wait_for_function(SETTLED)
    wait_for(f"a page {WIDTH} pixels wide", lambda: page.evaluate(SIDEWAYS), lambda wide: wide == WIDTH)
    assert [each for each in violations(page) if not each.startswith(STREAMLITS_MENU)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address_of_page", PAGES)
def test_every_page(page: Page, address: str, address_of_page: str, scheme: Literal["light", "dark"]) -> None:
    run = "?run=shakespeare" if address_of_page in ("reading", "writing") else ""
    check(page, f"{address}/{address_of_page}{run}", scheme)


@pytest.mark.parametrize(("name", "number"), STEPS)
def test_every_step_of_a_lecture(page: Page, address: str, name: str, number: int) -> None:
    """Each in one theme, in turns: the pages themselves have been seen in both."""
    step = lectures().files[name].steps[number - 1]
    view = urlencode(replace(step.view, lecture=name, lecture_step=number).to_query())
    scheme: Literal["light", "dark"] = "light" if number % 2 else "dark"
    check(page, f"{address}/{step.page}?{view}", scheme, asks=step.question is not None)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("link", ["accuracy?run=reverse&predict=1", "heads?run=reverse&predict=1"])
def test_a_question(page: Page, address: str, link: str, scheme: Literal["light", "dark"]) -> None:
    check(page, f"{address}/{link}", scheme, asks=True)
