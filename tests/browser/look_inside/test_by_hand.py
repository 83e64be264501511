"""The context vector by hand in a browser: steps by key, a query that turns, and the way back."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.kit.driving import plot, title, wait_until_painted


def test_the_steps_are_gone_through_and_the_query_turns(page: Page, address: str):
    page.goto(f"{address}/context?run=reverse&hand=divide")
    wait_until_painted(page, 5)
    strip = page.get_by_role("img", name=re.compile(r"^Step \d+ of 10"))
    expect(strip).to_have_attribute("aria-label", "Step 7 of 10: α")
    before = title(page).inner_text()
    page.keyboard.press("f")
    expect(strip).to_have_attribute("aria-label", "Step 8 of 10: c")
    page.get_by_role("slider", name="Turn the query by degrees").focus()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("turned=5"))
    expect(title(page)).not_to_have_text(before)
    expect(plot(page, "outcome")).to_be_visible()
    page.get_by_role("button", name="Reset", exact=True).click()
    expect(title(page)).to_have_text(before)
