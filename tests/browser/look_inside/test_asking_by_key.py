"""The five questions by the keyboard: a lecturer has a hand on it, not on the mouse."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.kit.driving import plot, query, title


def test_f_leads_to_the_next_question_and_b_back(page: Page, address: str) -> None:
    page.goto(f"{address}/questions")
    plot(page, "schedule").wait_for()
    page.keyboard.press("f")
    plot(page, "shapes").wait_for()
    expect(page).to_have_url(query(asked="2"))
    expect(title(page)).to_have_text(re.compile("a pattern of 3 × 5"))
    page.keyboard.press("b")
    plot(page, "schedule").wait_for()
    expect(page).not_to_have_url(query(asked="2"))
