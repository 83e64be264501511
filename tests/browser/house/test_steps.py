"""The steps of the pages by key: wherever the last click was, never while typing; and columns that move meanwhile."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.kit.driving import PAGES, SETTLED, go_to, plot, query, title, two_frames, wait_until_painted
from tests.kit.waiting import wait_for

WATCH = """() => {
  window.seen = new Set();
  const look = () => {
    const column = document.querySelector('.st-key-split .barlayer .point path');
    if (column) window.seen.add(Math.round(column.getBoundingClientRect().x));
    requestAnimationFrame(look);
  };
  look();
}"""


def strip(page: Page, steps: int) -> Locator:
    """The step in view among so many, in the words of a screen reader."""
    return page.get_by_role("img", name=re.compile(rf"^Step \d+ of {steps}"))


def test_f_and_b_lead_through_the_steps_of_each_page_however_fast_but_not_while_typing(page: Page, address: str):
    page.goto(f"{address}/questions?run=reverse")
    wait_until_painted(page, PAGES["Five questions"])
    page.keyboard.press("f")
    plot(page, "shapes").wait_for()
    expect(page).to_have_url(query(asked="2"))
    expect(title(page)).to_have_text(re.compile("a pattern of 3 × 5"))
    page.keyboard.press("b")
    plot(page, "schedule").wait_for()
    expect(page).not_to_have_url(query(asked="2"))

    go_to(page, "Attention by hand")
    step = strip(page, 10)
    expect(step).to_have_attribute("aria-label", "Step 1 of 10: v")
    wait_until_painted(page, PAGES["Attention by hand"])
    page.keyboard.press("f")
    expect(step).to_have_attribute("aria-label", "Step 2 of 10: k")

    go_to(page, "Inside a head")
    wait_until_painted(page, PAGES["Inside a head"])
    step = strip(page, 12)
    expect(step).to_have_attribute("aria-label", "Step 1 of 12: q")
    page.keyboard.press("f")
    expect(step).to_have_attribute("aria-label", "Step 2 of 12: K")
    for _ in range(3):  # faster than the page is drawn: none is lost
        page.keyboard.press("f")
        page.wait_for_timeout(60)
    expect(step).to_have_attribute("aria-label", re.compile("^Step 5 of 12"))
    page.get_by_text("Divide", exact=True).click()
    expect(step).to_have_attribute("aria-label", "Step 8 of 12: ÷ Σ")
    page.keyboard.press("b")
    expect(step).to_have_attribute("aria-label", "Step 7 of 12: Σ")
    expect(page).to_have_url(query(operation="sum"))
    page.get_by_label("The question", exact=True).fill("f")
    page.keyboard.press("b")
    expect(page.get_by_label("The question", exact=True)).to_have_value("fb")
    expect(page).to_have_url(query(operation="sum"))
    expect(step).to_have_attribute("aria-label", "Step 7 of 12: Σ")


def test_columns_move_from_step_to_step_of_a_block_unless_motion_is_unwanted(page: Page, address: str):
    page.goto(f"{address}/block?run=reverse&joint=project")
    wait_until_painted(page, 3)
    page.evaluate(WATCH)

    def places(part: str, motion: str) -> int:
        page.emulate_media(reduced_motion=motion)
        drawn = int(plot(page, "split").get_attribute("data-draws"))
        page.evaluate("window.seen.clear()")
        page.get_by_text(part, exact=True).click()
        expect(page).to_have_url(query(joint=part.lower()))
        expect(plot(page, "split")).not_to_have_attribute("data-draws", str(drawn))
        if motion == "no-preference":
            wait_for("a column on its way", lambda: page.evaluate("window.seen.size"), lambda seen: seen > 3)
        page.wait_for_function(SETTLED)
        two_frames(page)
        return int(page.evaluate("window.seen.size"))

    assert places("Split", "no-preference") > 3
    assert places("Project", "reduce") <= 3
