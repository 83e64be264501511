"""A lecture in the browser: walked by the arrow keys, what is marked is in sight, and the lecturer's keys work."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from dashboard.lectures.shelf import shelf
from tests.kit.driving import PATIENCE, query

pytestmark = [pytest.mark.browser, pytest.mark.nightly]


@pytest.mark.parametrize("name", sorted(shelf().lectures))
def test_the_arrow_keys_alone_lead_through_a_lecture(page: Page, address: str, name: str) -> None:
    lecture = shelf().lectures[name]
    page.set_viewport_size({"width": 1024, "height": 768})
    page.goto(f"{address}/lectures")
    page.locator(f".st-key-start-{name} button").click()
    for number, step in enumerate(lecture.steps, 1):
        way = page.locator(".st-key-lecture-way")
        expect(way).to_contain_text(f"step {number} of {len(lecture.steps)}", timeout=PATIENCE)
        expect(way).to_contain_text(step.title)
        if step.look:
            marked = page.locator(f".st-key-{step.look}").first
            expect(marked).to_be_in_viewport(timeout=PATIENCE)
            expect(marked).to_have_css("outline-style", "dashed")
        expect(page.locator(".st-key-lecture")).to_be_in_viewport(ratio=0.5)
        expect(page.locator(".st-key-lecture-next button")).to_contain_text("Next")
        if number < len(lecture.steps):
            page.keyboard.press("ArrowRight" if number % 2 else "PageDown")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".st-key-lecture-way")).to_contain_text(f"step {len(lecture.steps) - 1} of", timeout=PATIENCE)


def test_the_lecturers_keys(page: Page, address: str) -> None:
    page.goto(f"{address}/inside?run=reverse&query=9&operation=dot&lecture=attention&lecture_step=6")
    strip = page.locator(".st-key-lecture")
    expect(strip).to_contain_text("step 6 of", timeout=PATIENCE)
    black = page.locator(".al-podium-black")
    page.locator(".al-podium[data-state=ready]").wait_for(state="attached", timeout=PATIENCE)
    page.keyboard.press("b")
    expect(black).to_be_visible()
    page.keyboard.press("ArrowRight")  # only brings the screen back
    expect(black).to_have_count(0)
    expect(strip).to_contain_text("step 6 of")
    size = "() => parseFloat(getComputedStyle(document.documentElement).fontSize)"
    before = page.evaluate(size)
    page.keyboard.press("+")
    assert page.evaluate(size) == pytest.approx(1.1 * before)
    page.reload()
    expect(strip).to_contain_text("step 6 of", timeout=PATIENCE)
    page.locator(".al-podium[data-state=ready]").wait_for(state="attached", timeout=PATIENCE)
    assert page.evaluate(size) == pytest.approx(1.1 * before)
    page.keyboard.press("-")
    assert page.evaluate(size) == before
    expect(page.locator(".st-key-control-head")).to_be_hidden()
    page.get_by_role("button", name="Explore from here").click()
    expect(page.locator(".st-key-control-head")).to_be_visible(timeout=PATIENCE)
    expect(page).to_have_url(query(exploring="1"), timeout=PATIENCE)
    page.keyboard.press("f")
    expect(page).to_have_url(query(operation="scale"), timeout=PATIENCE)
    page.keyboard.press("r")
    expect(page).to_have_url(query(operation="dot"), timeout=PATIENCE)
    expect(page.locator(".st-key-control-head")).to_be_hidden(timeout=PATIENCE)


def test_a_reload_keeps_the_step(page: Page, address: str) -> None:
    page.goto(f"{address}/lectures")
    page.locator(".st-key-start-masks button").click()
    way = page.locator(".st-key-lecture-way")
    expect(way).to_contain_text("step 1 of", timeout=PATIENCE)
    expect(page).to_have_url(query(lecture="masks"), timeout=PATIENCE)
    expect(page.locator(".st-key-lecture-next button")).to_contain_text("Next", timeout=PATIENCE)
    page.keyboard.press("ArrowRight")
    expect(way).to_contain_text("step 2 of", timeout=PATIENCE)
    expect(page).to_have_url(query(lecture_step="2"), timeout=PATIENCE)
    page.reload()
    expect(way).to_contain_text("step 2 of", timeout=PATIENCE)
