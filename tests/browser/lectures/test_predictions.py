"""Predict, then see: covered until one commits, compared, kept over a reload, and never told to Python."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.browser.conftest import SCREEN
from tests.browser.lectures.conftest import see_question
from tests.kit.driving import PATIENCE, SETTLED, fits_a_phone


def states(frame: bytes | str) -> list[str]:
    """What a frame to the server says of widgets and components; in words, the page asks for news."""
    if isinstance(frame, str):
        return [frame]
    return [str(each) for each in BackMsg.FromString(frame).rerun_script.widget_states.widgets]


def test_bars_are_drawn_by_key_compared_and_kept(page: Page, address: str) -> None:
    page.goto(f"{address}/accuracy?run=reverse&predict=1")
    box = page.locator(".al-prediction")
    bars = box.get_by_role("slider")
    expect(bars).to_have_count(16, timeout=PATIENCE)
    title = page.get_by_role("heading", level=1)
    expect(title).to_be_hidden()
    fits_a_phone(page)
    show = box.get_by_role("button", name="Show the answer")
    expect(show).to_be_disabled()
    for number in range(16):
        bars.nth(number).press("Home" if number < 7 else "End")
    show.click()
    expect(title).to_be_visible(timeout=PATIENCE)
    predicted = [0.0] * 7 + [1.0] * 9
    truth = [float(each.get_attribute("aria-valuetext").split()[-1]) for each in bars.all()]
    off = sum(abs(one - other) for one, other in zip(predicted, truth, strict=True)) / 16
    said = box.locator(".verdict").inner_text()
    assert abs(float(said.split()[5]) - off) <= 0.011  # both are rounded
    page.reload()
    expect(box.locator(".verdict")).to_have_text(said, timeout=PATIENCE)
    expect(title).to_be_visible(timeout=PATIENCE)
    box.get_by_role("button", name="Predict again").click()
    expect(title).to_be_hidden()


def test_cells_are_painted_by_pointer_and_weighed(page: Page, address: str) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(f"{address}/heads?run=reverse&predict=1")
    box = page.locator(".al-prediction")
    picture = box.get_by_role("application")
    expect(picture).to_be_visible(timeout=PATIENCE)
    fits_a_phone(page)
    page.set_viewport_size(SCREEN)
    page.wait_for_function(SETTLED)
    picture.scroll_into_view_if_needed()  # once it stands still: the clicks do not wait for that
    cells = picture.locator(".cell, .forbidden")
    for query, key in ((9, 8), (10, 7), (16, 1), (1, 16)):  # the last one is forbidden, and takes no paint
        cells.nth(16 * (query - 1) + key - 1).click(force=True)
    expect(picture.locator(".painted")).to_have_count(3)
    box.get_by_role("button", name="Show the answer").click()
    weights = picture.locator(".painted").evaluate_all(
        "all => all.map((each) => Number(each.style.getPropertyValue('--weight')))"
    )
    said = box.locator(".verdict").inner_text()
    assert said.startswith("In the 3 rows where you painted, ")
    assert float(said.split()[7]) == pytest.approx(sum(weights) / 3, abs=0.0051)
    evenly = (1 / 9 + 1 / 10 + 1 / 16) / 3
    assert float(said.split()[-2]) == pytest.approx(evenly, abs=0.0051)
    assert sum(weights) > 2.5


def test_a_lectures_words_wait_for_the_choice(page: Page, address: str) -> None:
    sent: list[bytes | str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    page.goto(f"{address}/accuracy?run=reverse&lecture=masks&lecture_step=1")
    box, words = page.locator(".al-prediction"), page.locator(".st-key-lecture-words")
    expect(box.get_by_role("radio")).to_have_count(3, timeout=PATIENCE)
    expect(words).to_be_hidden()
    expect(page.get_by_text("Half right, and rightly so")).to_be_hidden()
    box.get_by_label("Both halves").check()
    box.get_by_role("button", name="Show the answer").click()
    expect(words).to_be_visible()
    verdict = "You predicted “Both halves”; it is “The second half only”."
    expect(page.locator(".al-podium")).to_have_text(verdict)
    expect(page.locator(".st-key-accuracy")).to_be_in_viewport(timeout=PATIENCE)
    assert sent
    assert [each for frame in sent for each in states(frame) if "question" in each] == []  # the server is told nothing
    kept = json.loads(page.evaluate("localStorage.getItem('attention-lab-predictions')"))
    assert list(kept.values())[-1] == {"choice": 0}
    see_question(page)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".st-key-lecture-way")).to_contain_text("step 2 of", timeout=PATIENCE)
    expect(page.locator(".al-podium")).to_be_hidden(timeout=PATIENCE)
    expect(words).to_be_visible()


def test_a_lecture_that_is_started_again_asks_again_and_takes_one_number_for_a_number(page: Page, address: str) -> None:
    for _ in range(2):
        page.goto(f"{address}/lectures")
        page.locator(".st-key-start-masks").get_by_role("button").click()
        see_question(page)
        page.get_by_role("button", name="Show without predicting").click()
        expect(page.locator(".st-key-lecture-words")).to_be_visible(timeout=PATIENCE)
    page.reload()
    expect(page.locator(".st-key-lecture-words")).to_be_visible(timeout=PATIENCE)
    box = page.locator(".al-prediction")
    edits = "edits=zero:decoder.0.self_attention.2"
    page.goto(f"{address}/edits?run=reverse&{edits}&lecture=attention&lecture_step=11")
    see_question(page)
    field, show = box.get_by_placeholder("a share, 0 to 1"), box.get_by_role("button", name="Show the answer")
    share = "A share from 0 to 1, as 0.85 or 85 %."
    for typed, hint in (("40", share), ("-0.1", share), ("0.85", ""), ("40 %", "")):
        field.fill(typed)
        expect(box.locator(".hint")).to_have_text(hint)
        expect(show).to_be_enabled() if not hint else expect(show).to_be_disabled()
    field.press("Enter")
    expect(box.locator(".verdict")).to_contain_text("You predicted 0.40; it is 0.9")
    page.goto(f"{address}/masks?run=reverse&lecture=masks&lecture_step=9")
    see_question(page)
    field, show = box.get_by_placeholder("a number"), box.get_by_role("button", name="Show the answer")
    for typed, hint in (("7 of 8", "One number, as 7 or 0.85."), ("87%", "One number, as 7 or 0.85."), ("7", "")):
        field.fill(typed)
        expect(box.locator(".hint")).to_have_text(hint)
        expect(show).to_be_enabled() if not hint else expect(show).to_be_disabled()
    field.press("Enter")
    expect(box.locator(".verdict")).to_contain_text("You predicted 7")
    see_question(page)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".st-key-lecture-way")).to_contain_text("step 10 of", timeout=PATIENCE)


def test_one_may_look_without_a_prediction(page: Page, address: str) -> None:
    page.goto(f"{address}/film?run=reverse&predict=1")
    box = page.locator(".al-prediction")
    expect(box.locator("textarea")).to_be_visible(timeout=PATIENCE)
    box.locator("textarea").fill("<b>nothing</b>")
    box.get_by_role("button", name="Show the answer").click()
    expect(box.locator(".verdict")).to_have_text("You wrote: “<b>nothing</b>”")
    box.get_by_role("button", name="Predict again").click()
    box.get_by_role("button", name="Show without predicting").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible(timeout=PATIENCE)
    expect(box.locator("textarea")).to_have_count(0)


def test_a_question_that_goes_late_covers_no_answer_of_the_next(page: Page, address: str) -> None:
    page.goto(f"{address}/accuracy?run=reverse&lecture=masks&lecture_step=1")
    see_question(page)
    page.get_by_role("button", name="Show without predicting").click()
    words = page.locator(".st-key-lecture-words")
    expect(words).to_be_visible()
    gone = """host => {
      const of = new host.__prediction.constructor(document.createElement('section'));
      of.asked = { id: 'before' };
      of.dispose();
      return document.documentElement.dataset.predicted === host.dataset.question;
    }"""
    assert page.locator(".al-prediction").evaluate(gone)
    expect(words).to_be_visible()
