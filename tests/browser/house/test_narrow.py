"""On a phone no page and no step of a lecture scrolls sideways, and axe-core finds nothing there.

Each is seen in one theme, by turns; test_accessibility.py sees every page in both.
"""

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
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, Scheme] = ("light", "dark")
WIDTH = 390
STREAMLITS_MENU = ("list:", "listitem:")
"""On a narrow screen the menus stand in the sidebar, in a list that Streamlit nests wrongly (1.67)."""
SIDEWAYS = "() => document.querySelector('[data-testid=stMain]').scrollWidth"
STEPS = list(
    {
        (step.page, step.question is not None, step.look): (name, number)
        for name, each in lectures().files.items()
        for number, step in enumerate(each.steps, 1)
    }.values()
)
"""One step for each page, part of it that is marked, and whether a question covers it."""


def check(page: Page, link: str, scheme: Scheme, *, asks: bool = False) -> None:
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


@pytest.mark.parametrize(("number", "name"), list(enumerate(PAGES)))
def test_every_page(page: Page, address: str, number: int, name: str) -> None:
    run = "?run=shakespeare" if name in ("reading", "writing") else ""
    check(page, f"{address}/{name}{run}", SCHEMES[number % 2])


@pytest.mark.parametrize(("name", "number"), STEPS)
def test_every_step_of_a_lecture(page: Page, address: str, name: str, number: int) -> None:
    step = lectures().files[name].steps[number - 1]
    view = urlencode(replace(step.view, lecture=name, lecture_step=number).to_query())
    check(page, f"{address}/{step.page}?{view}", SCHEMES[number % 2], asks=step.question is not None)


@pytest.mark.parametrize(("name", "scheme"), [("accuracy", "light"), ("heads", "dark")])
def test_a_question(page: Page, address: str, name: str, scheme: Scheme) -> None:
    check(page, f"{address}/{name}?run=reverse&predict=1", scheme, asks=True)
