"""The steps inside a head by key: wherever the last click was, and never while typing."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.kit.driving import wait_until_painted


def test_the_steps_are_gone_through_by_key(page: Page, address: str):
    page.goto(f"{address}/inside?run=reverse")
    wait_until_painted(page, 3)
    strip = page.get_by_role("img", name=re.compile(r"^Step \d+ of 12"))
    expect(strip).to_have_attribute("aria-label", "Step 1 of 12: q")
    page.keyboard.press("f")
    expect(strip).to_have_attribute("aria-label", "Step 2 of 12: K")
    for _ in range(3):  # faster than the page is drawn: none is lost
        page.keyboard.press("f")
        page.wait_for_timeout(60)
    expect(strip).to_have_attribute("aria-label", re.compile("^Step 5 of 12"))
    page.get_by_text("Divide", exact=True).click()
    expect(strip).to_have_attribute("aria-label", "Step 8 of 12: ÷ Σ")
    page.keyboard.press("b")
    expect(strip).to_have_attribute("aria-label", "Step 7 of 12: Σ")
    expect(page).to_have_url(re.compile("operation=sum"))
    page.get_by_label("Input").fill("f")
    page.keyboard.press("b")
    expect(page).to_have_url(re.compile("operation=sum"))
    expect(strip).to_have_attribute("aria-label", "Step 7 of 12: Σ")
