"""A hidden mistake of the gallery, in a real browser: looked at, named, its score kept by this browser, on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from dashboard.models.on_the_spot.hidden import drawn
from tests.kit.driving import PAGES, PHONE, choose, go_to, query, title, violations, wait_until_painted
from tests.kit.waiting import wait_for

SIDE_BY_SIDE = """() => {
  const [wrong, right] = [...document.querySelectorAll('.st-key-stacked-mistake [data-testid=stHtml]')].map(
    (each) => each.getBoundingClientRect());
  return [right.left >= wrong.right, right.top >= wrong.bottom];
}"""
"""Does the right code stand beside the wrong code, does it stand below it?"""


def test_a_hidden_mistake_is_looked_at_elsewhere_and_named_and_its_score_and_both_codes_find_their_place(
    new_page: Callable[..., Page], address: str
) -> None:
    page = new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{address}/mistakes?run=reverse&riddle=5")
    expect(title(page)).to_have_text("Which mistake is this?")
    wait_until_painted(page, PAGES["Gallery of mistakes"])
    assert violations(page) == []
    page.get_by_role("button", name="Look at it on every page").click()
    expect(page).to_have_url(re.compile("/heads[?].*run=hidden-5"))
    expect(page.get_by_label("Model", exact=True)).to_have_value("a hidden mistake")
    wait_until_painted(page, plots=3)
    go_to(page, "Gallery of mistakes")
    expect(title(page)).to_have_text("Which mistake is this?")

    hidden = drawn(5)[0]
    choose(page, "It is this mistake", hidden.title)
    page.get_by_role("button", name="Probe", exact=True).click()
    answer = page.get_by_role("button", name="Answer", exact=True)
    expect(answer).to_be_enabled()
    answer.click()
    expect(title(page)).to_have_text(f"Right: “{hidden.title}”.")
    score = page.locator(".al-score .words").last  # the one before stands until the page is drawn
    expect(score).to_have_text("Named 1 of 1 in this browser.")
    expect(page.locator(".st-key-stacked-mistake")).to_be_visible()
    assert violations(page) == []
    assert page.evaluate(SIDE_BY_SIDE) == [True, False]
    page.set_viewport_size(PHONE)
    wait_for("the right code below the wrong code", lambda: page.evaluate(SIDE_BY_SIDE), lambda at: at == [False, True])
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollWidth - main.clientWidth") <= 0

    page.reload()
    expect(title(page)).to_have_text("Which mistake is this?")
    expect(page).to_have_url(query(riddle="5"))
    expect(score).to_have_text("Named 1 of 1 in this browser.")
    page.get_by_role("button", name="Forget the score").click()
    expect(score).to_have_text("")
