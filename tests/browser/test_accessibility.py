"""Every page in both themes, as axe-core sees it. Nothing is excused: Streamlit's own widgets pass as well."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from driving import PAGES, go_to, title, wait_until_painted
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def violations(page: Page) -> list[str]:
    """What axe-core finds, an entry an element."""
    found = Axe().run(page).response["violations"]
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in found
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible(new_page: Callable[..., Page], address: str, scheme: str):
    page = new_page(color_scheme=scheme)
    page.goto(address)
    ground = page.get_by_test_id("stApp").evaluate("app => getComputedStyle(app).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) > 384) == (scheme == "light")
    for number, (name, plots) in enumerate(PAGES.items()):
        if number:
            go_to(page, name)
        wait_until_painted(page, plots)
        expect(title(page)).to_be_visible()
        assert violations(page) == [], name


def test_a_training_is_accessible(page: Page, address: str):
    page.goto(address)
    wait_until_painted(page, PAGES["Overview"])
    page.get_by_test_id("stSidebar").get_by_test_id("stBaseButton-primary").click()
    expect(page.locator(".st-key-training p").first).to_contain_text("It is selected below.")
    expect(page.locator(".st-key-training .film[data-state=ready]")).to_be_visible()
    wait_until_painted(page, PAGES["Overview"])
    assert violations(page) == []
