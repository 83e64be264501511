"""A lecture in the browser: walked by the arrow keys, what is marked is in sight, and the lecturer's keys work.

On a phone none of its steps scrolls sideways, and axe-core finds nothing there.
"""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize, expect

from dashboard.lectures.lecture import SIDEBAR
from dashboard.lectures.shelf import lectures
from tests.kit.driving import PATIENCE, SETTLED, fits_a_phone, query

pytestmark = [pytest.mark.browser, pytest.mark.nightly]
PROJECTOR: ViewportSize = {"width": 1024, "height": 768}


@pytest.mark.parametrize("name", sorted(lectures().files))
def test_the_arrow_keys_alone_lead_through_a_lecture(page: Page, address: str, name: str) -> None:
    lecture = lectures().files[name]
    seen: set[tuple[str, bool]] = set()
    page.emulate_media(color_scheme="dark" if sorted(lectures().files).index(name) % 2 else "light")
    page.set_viewport_size(PROJECTOR)
    page.goto(f"{address}/lectures")
    page.evaluate("localStorage.removeItem('attention-lab-predictions')")
    page.locator(f".st-key-start-{name} button").click()
    for number, step in enumerate(lecture.steps, 1):
        way = page.locator(".st-key-lecture-way")
        expect(way).to_contain_text(f"step {number} of {len(lecture.steps)}", timeout=PATIENCE)
        expect(way).to_contain_text(step.title)
        if step.question is not None:  # the first press shows the answer, the next goes on
            expect(page.locator(".al-prediction h2")).to_have_text(step.question.text, timeout=PATIENCE)
            expect(page.locator(".st-key-lecture-words")).to_be_hidden()
            page.keyboard.press("ArrowRight")
        if step.look:
            marked = page.locator(f".st-key-{step.look}").first
            expect(marked).to_be_in_viewport(timeout=PATIENCE)
            expect(marked).to_have_css("outline-style", "dashed")
        expect(page.locator(".st-key-lecture")).to_be_in_viewport(ratio=0.5)
        expect(page.locator(".st-key-lecture-next button")).to_contain_text("Next")
        if SIDEBAR not in step.controls:
            buttons = page.locator(".st-key-lecture-way button, .st-key-lecture-way [data-testid=stLinkButton] a")
            shown = "all => all.map((each) => each.getBoundingClientRect()).filter(({ width }) => width)"
            tops = [box["top"] for box in buttons.evaluate_all(shown)]
            assert len(tops) >= 6
            assert max(tops) - min(tops) < 10, "the buttons take two lines"
        kind = (step.page, step.question is not None)
        fits_a_phone(page, axe=kind not in seen)
        seen.add(kind)
        page.set_viewport_size(PROJECTOR)
        if number < len(lecture.steps):
            page.keyboard.press("ArrowRight" if number % 2 else "PageDown")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".st-key-lecture-way")).to_contain_text(f"step {len(lecture.steps) - 1} of", timeout=PATIENCE)
    expect(page).to_have_url(query(lecture_step=str(len(lecture.steps) - 1)), timeout=PATIENCE)
    page.reload()
    expect(page.locator(".st-key-lecture-way")).to_contain_text(f"step {len(lecture.steps) - 1} of", timeout=PATIENCE)


def test_the_lecturers_keys(page: Page, address: str) -> None:
    page.goto(f"{address}/inside?run=reverse&query=9&operation=dot&lecture=attention&lecture_step=6")
    strip = page.locator(".st-key-lecture")
    expect(strip).to_contain_text("step 6 of", timeout=PATIENCE)
    black = page.locator(".al-podium-black")
    page.locator(".al-podium[data-state=ready]").wait_for(state="attached", timeout=PATIENCE)
    page.keyboard.press(".")
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


def test_b_blacks_the_screen_but_where_a_button_bears_it(page: Page, address: str) -> None:
    black = page.locator(".al-podium-black")
    page.goto(f"{address}/heads?run=reverse&query=9&lecture=attention&lecture_step=4")
    page.locator(".al-podium[data-state=ready]").wait_for(state="attached", timeout=PATIENCE)
    page.keyboard.press("b")
    expect(black).to_be_visible()
    page.keyboard.press("b")
    expect(black).to_have_count(0)
    page.goto(f"{address}/inside?run=reverse&query=9&operation=dot&lecture=attention&lecture_step=6")
    page.locator(".al-podium[data-state=ready]").wait_for(state="attached", timeout=PATIENCE)
    back = page.get_by_role("button", name="Back", exact=True).last
    expect(back).to_contain_text("B", timeout=PATIENCE)
    page.keyboard.press("b")
    expect(page).to_have_url(query(operation="keys"), timeout=PATIENCE)
    while back.is_enabled():
        before = page.url
        page.keyboard.press("b")
        expect(page).not_to_have_url(before)
        page.wait_for_function(SETTLED)
    page.keyboard.press("b")  # a button that cannot be pressed bears it all the same
    expect(black).to_have_count(0)


def test_t_trains_in_a_lecture_and_r_returns(page: Page, address: str) -> None:
    page.goto(f"{address}/heads?run=reverse&query=9&lecture=attention&lecture_step=4")
    page.locator(".al-podium[data-state=ready]").wait_for(state="attached", timeout=PATIENCE)
    expect(page.locator(".st-key-lecture-next button")).to_contain_text("Next", timeout=PATIENCE)
    page.wait_for_function(SETTLED)  # the button that bears T is drawn last
    page.keyboard.press("t")
    expect(page).to_have_url(re.compile("run=(?!reverse&)"), timeout=PATIENCE)
    home = page.locator(".st-key-lecture-return button")
    expect(home).to_be_visible(timeout=PATIENCE)
    page.keyboard.press("r")
    expect(page).to_have_url(query(run="reverse"), timeout=PATIENCE)
    expect(home).to_have_count(0, timeout=PATIENCE)


def test_one_may_leave_and_explore_after_a_key_has_changed_the_page(page: Page, address: str) -> None:
    way = page.locator(".st-key-lecture-way")
    page.goto(f"{address}/machine?run=reverse&lecture=attention&lecture_step=12")
    expect(way).to_contain_text("step 12 of", timeout=PATIENCE)
    expect(page.locator(".st-key-lecture-next button")).to_contain_text("Next", timeout=PATIENCE)
    page.keyboard.press("ArrowRight")  # the next step stands on another page
    expect(page).to_have_url(query(lecture_step="13"), timeout=PATIENCE)
    page.get_by_role("button", name="Explore from here").click()
    expect(page).to_have_url(query(exploring="1"), timeout=PATIENCE)
    page.get_by_role("button", name="Leave").click()
    expect(way).to_have_count(0, timeout=PATIENCE)


def test_the_presenters_window_follows_and_leads(page: Page, address: str) -> None:
    steps = lectures().files["attention"].steps
    page.goto(f"{address}/accuracy?run=reverse&lecture=attention&lecture_step=2")
    expect(page.locator(".al-prediction h2")).to_be_visible(timeout=PATIENCE)
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Presenter").first.click(timeout=PATIENCE)
    window = opened.value
    place, state, notes = (window.locator(f"#{name}") for name in ("place", "state", "notes"))
    expect(place).to_have_text(f"Step 2 of {len(steps)}", timeout=PATIENCE)
    expect(notes).to_contain_text("the second half, but not the first")
    expect(window.locator("#next")).to_contain_text(steps[2].title)
    if "The page is covered" in state.inner_text():  # another test in this browser may have answered it
        window.keyboard.press("ArrowRight")
        expect(page.locator(".st-key-lecture-words")).to_be_visible(timeout=PATIENCE)
        expect(state).not_to_contain_text("The page is covered")
    window.get_by_role("button", name="Next →").click()
    expect(place).to_have_text(f"Step 3 of {len(steps)}", timeout=PATIENCE)
    expect(page.locator(".st-key-lecture-way")).to_contain_text("step 3 of")
    window.reload()
    expect(place).to_have_text(f"Step 3 of {len(steps)}")
    expect(window.locator("#clock")).to_contain_text("of 20 min")
    assert Axe().run(window).response["violations"] == []
    page.get_by_role("button", name="Leave").click()
    expect(state).to_contain_text("The lecture was left", timeout=PATIENCE)
    window.close()
