"""The gallery of mistakes, in a real browser: chosen, trained on the spot, its code read, and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from dashboard.models.on_the_spot.hidden import drawn
from tests.kit.driving import PAGES, PHONE, choose, go_to, plot, query, title, violations, wait_until_painted
from tests.kit.waiting import wait_for

SIDE_BY_SIDE = """() => {
  const [wrong, right] = [...document.querySelectorAll('.st-key-stacked-mistake [data-testid=stHtml]')].map(
    (each) => each.getBoundingClientRect());
  return [right.left >= wrong.right, right.top >= wrong.bottom];
}"""
"""Does the right code stand beside the wrong code, does it stand below it?"""


def test_a_mistake_is_chosen_trained_on_the_spot_and_read(page: Page, address: str) -> None:
    page.goto(f"{address}/mistakes?run=reverse")
    expect(title(page)).to_have_text(re.compile(r"^It looks perfect: .* Then only the last token changes, and an "))
    wait_until_painted(page, PAGES["Gallery of mistakes"])
    code = page.locator(".st-key-stacked-mistake")
    expect(code).to_contain_text("return attention.out(z.reshape(batch, length, d_model))")
    expect(code).to_contain_text("return attention.out(z.transpose(1, 2).reshape(batch, length, d_model))")
    assert page.evaluate(SIDE_BY_SIDE) == [True, False]
    assert violations(page) == []
    page.set_viewport_size(PHONE)
    wait_for("the right code below the wrong code", lambda: page.evaluate(SIDE_BY_SIDE), lambda at: at == [False, True])
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollWidth - main.clientWidth") <= 0
    page.set_viewport_size({"width": 1440, "height": 900})

    page.get_by_role("radio", name="Mask", exact=True).click()
    expect(page).to_have_url(query(mistake="mask-hides-self"))
    choose(page, "Mistake", "The mask sees one token ahead")
    expect(page).to_have_url(query(mistake="mask-sees-one-ahead"))
    expect(title(page)).to_have_text(re.compile(r"of the first half, which is random: on average a query gives later "))
    expect(plot(page, "mistake-accuracy")).to_be_visible()
    expect(code).to_contain_text("tril(diagonal=1)")

    page.get_by_role("radio", name="Training", exact=True).click()
    expect(title(page)).to_have_text(re.compile(r"^Share of steps with help: "))
    expect(page.locator(".al-plot")).to_have_count(0)
    assert violations(page) == []


def test_a_hidden_mistake_is_named_and_the_score_stays_in_this_browser(
    new_page: Callable[..., Page], address: str
) -> None:
    page = new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{address}/mistakes?run=reverse&riddle=5")
    expect(title(page)).to_have_text("Which mistake is this?")
    wait_until_painted(page, PAGES["Gallery of mistakes"])
    assert violations(page) == []
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
    page.get_by_role("button", name="Another one").click()
    expect(title(page)).to_have_text("Which mistake is this?")
    expect(score).to_have_text("Named 1 of 1 in this browser.")
    page.get_by_role("button", name="Forget the score").click()
    expect(score).to_have_text("")


def test_a_hidden_mistake_is_looked_at_on_other_pages_and_then_named(page: Page, address: str) -> None:
    page.goto(f"{address}/mistakes?run=reverse&riddle=5")
    page.get_by_role("button", name="Look at it on every page").click()
    expect(page).to_have_url(re.compile("/heads[?].*run=hidden-5"))
    wait_until_painted(page, plots=3)
    expect(page.get_by_label("Model", exact=True)).to_have_value("a hidden mistake")
    go_to(page, "Accuracy by position")
    wait_until_painted(page, plots=2)
    expect(page).to_have_url(re.compile("/accuracy[?].*run=hidden-5"))
    go_to(page, "Gallery of mistakes")
    expect(title(page)).to_have_text("Which mistake is this?")
    expect(page.get_by_role("button", name="Answer", exact=True)).to_be_visible()
