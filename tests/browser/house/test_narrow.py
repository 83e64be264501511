"""On a phone no page scrolls sideways, and axe-core finds nothing there; test_lectures.py sees the steps of lectures.

Each is seen in one theme, by turns; test_accessibility.py sees every page in both.
"""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, expect

from dashboard.view.pages import PAGES
from tests.kit.driving import PATIENCE, PHONE, fits_a_phone

pytestmark = [pytest.mark.browser, pytest.mark.nightly]
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, Scheme] = ("light", "dark")


def check(page: Page, link: str, scheme: Scheme, marked: Locator) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(PHONE)
    page.goto(link)
    expect(page.locator("[data-test-script-state=running]")).to_have_count(0, timeout=PATIENCE)
    expect(marked).to_be_visible(timeout=PATIENCE)
    fits_a_phone(page)


@pytest.mark.parametrize(("number", "name"), list(enumerate(PAGES)))
def test_every_page(page: Page, address: str, number: int, name: str) -> None:
    run = "?run=shakespeare" if name in ("reading", "writing") else ""
    check(page, f"{address}/{name}{run}", SCHEMES[number % 2], page.get_by_role("heading", level=1).first)


@pytest.mark.parametrize(("name", "scheme"), [("accuracy", "light"), ("heads", "dark")])
def test_a_question(page: Page, address: str, name: str, scheme: Scheme) -> None:
    check(page, f"{address}/{name}?run=reverse&predict=1", scheme, page.locator(".al-prediction h2"))
