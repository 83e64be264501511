"""An exercise in a real browser: begun, solved by a click, and its proof kept by this browser and opened in another."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.kit.driving import PAGES, click_head, query, wait_until_painted


def strip(page: Page) -> Locator:
    return page.locator(".st-key-exercise")


def solved(page: Page) -> Locator:
    return strip(page).get_by_text("Solved. The link to this view is the proof.")


def test_an_exercise_is_solved_and_its_proof_is_kept_in_the_reader_s_browser_and_opens_solved_in_another(
    new_page: Callable[..., Page], address: str
) -> None:
    student, teacher = new_page(locale="en"), new_page(locale="en")
    student.goto(f"{address}/exercises")
    card = ".st-key-exercise-reading-head"
    student.locator(".st-key-start-reading-head button").click()
    expect(strip(student)).to_contain_text("Find the third head that looks at the answer")
    wait_until_painted(student, PAGES["Attention heads"])
    student.goto(f"{student.url}&input=1+2+3+4+5+6+7+8")
    wait_until_painted(student, PAGES["Attention heads"])
    expect(solved(student)).to_have_count(0)
    click_head(student, 3)
    expect(solved(student)).to_be_visible()
    expect(strip(student)).not_to_contain_text("not yet")
    expect(student).to_have_url(query(exercise="reading-head", head="decoder.0.self_attention.3"))
    student.goto(f"{address}/exercises")
    expect(student.locator(card)).to_contain_text("Solved before in this browser.")
    expect(student.locator(".st-key-exercise-cheat")).not_to_contain_text("Solved")
    proof = student.locator(card).get_by_role("link", name="Open the solution").get_attribute("href")
    assert proof
    teacher.goto(f"{address}/exercises")
    expect(teacher.locator(".st-key-start-cheat")).to_be_visible()
    expect(teacher.locator(card)).not_to_contain_text("Solved")
    teacher.goto(proof)
    expect(solved(teacher)).to_be_visible()
