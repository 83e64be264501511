"""Each exercise solved as a person solves it, in a real browser; the proof opened by somebody else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from dashboard.lectures.shelf import exercises
from tests.kit.driving import PAINTED, SETTLED, choose, click_at, click_head, drag, query, type_into, unfold_settings

NAMES = tuple(exercises().files)
Solution = Callable[[Page], None]


def settle(page: Page) -> None:
    page.wait_for_function(f"() => ({SETTLED})()")


def strip(page: Page) -> Locator:
    return page.locator(".st-key-exercise")


def solved(page: Page) -> Locator:
    return strip(page).get_by_text("Solved. The link to this view is the proof.")


def edit(page: Page, kind: str, head: str = "") -> None:
    """Add an edit, of a head if one is named, and wait until its chip is there."""
    chips = page.locator("[class*=st-key-pill]")
    before = chips.count()
    choose(page, "Edit", kind)
    settle(page)
    if head:
        choose(page, "of", head)
        settle(page)
    page.get_by_role("button", name="Add").click()
    expect(chips).to_have_count(before + 1)
    settle(page)


def click_cell(page: Page, host: Locator, row: int, column: int) -> None:
    """Paint a cell, counted from 0, or wipe it, and wait until the page has answered."""
    before = host.evaluate("(host, cell) => host.__painter.cells[cell]", 16 * row + column)
    click_at(host, PAINTED, [row, column])
    page.wait_for_function(
        "([host, cell, before]) => host.__painter.cells[cell] !== before",
        arg=[host.element_handle(), 16 * row + column, before],
    )
    settle(page)


def train(page: Page) -> None:
    page.get_by_test_id("stSidebar").get_by_test_id("stBaseButton-primary").click()
    expect(page.locator(".st-key-training p").first).to_contain_text("The pages now show it.")


# --- how a person solves each


def reading_head(page: Page) -> None:
    click_head(page, 2)


def known_by_a_beginner(page: Page) -> None:
    type_into(page, "Input", "7 7 7 7 7 7 7 7")


def turning_point(page: Page) -> None:
    slider = page.get_by_test_id("stSidebar").get_by_role("slider")
    for before, step in (("0", "13"), ("13", "20")):
        expect(slider).to_have_attribute("aria-valuetext", before)  # told by Python, it moves after the script's end
        slider.press("ArrowRight")
        expect(page).to_have_url(query(step=step))
        settle(page)


def swapped(page: Page) -> None:
    choose(page, "Edit", "swap two positions")
    settle(page)
    type_into(page, "Position", "4")
    settle(page)
    type_into(page, "and position", "7")
    settle(page)
    page.get_by_role("button", name="Add").click()


def half_known(page: Page) -> None:
    """Wipe the first four columns below the fourth row, one drag a column."""
    host = page.locator(".painter[data-draws]")
    host.wait_for()
    for column in range(4):
        drag(host, PAINTED, [4, column], [15, column])
        page.wait_for_function(
            "([host, column]) => !host.__painter.cells[15 * 16 + column]", arg=[host.element_handle(), column]
        )
        settle(page)


def unseen_break(page: Page) -> None:
    edit(page, "keep only this head", "cross head 0.1")


def two_heads(page: Page) -> None:
    for head in ("head 0.0", "head 0.2"):
        edit(page, "remove a head: zero", head)


def copied_by_hand(page: Page) -> None:
    """Wipe the anti-diagonal and paint a diagonal in its place: from SEP on, each query looks at its own token."""
    edit(page, "look at painted keys")
    host = page.locator(".painter[data-draws]")
    host.wait_for()
    for place in range(8):
        for column in (7 - place, place):
            click_cell(page, host, 8 + place, column)


def in_the_middle(page: Page) -> None:
    turned = page.get_by_role("slider", name="Turn the query by degrees")
    for degrees in range(-5, -65, -5):
        turned.press("ArrowLeft")
        expect(page).to_have_url(query(turned=str(degrees)))
        settle(page)


def no_trace(page: Page) -> None:
    page.get_by_role("radio", name="Formula").click()
    settle(page)
    choose(page, "Mistake", "The scale is missing")


def one_head(page: Page) -> None:
    unfold_settings(page)
    for label in ("Layers", "Heads"):
        type_into(page, label, "1")
        expect(page).to_have_url(query(**{label.lower(): "1"}))
        settle(page)
    train(page)


def cheat(page: Page) -> None:
    unfold_settings(page)
    choose(page, "Mask", "full")
    expect(page).to_have_url(query(train_mask="full"))
    settle(page)
    train(page)


SOLUTIONS: dict[str, Solution] = {
    each.__name__.replace("_", "-"): each
    for each in (
        reading_head,
        known_by_a_beginner,
        turning_point,
        swapped,
        half_known,
        unseen_break,
        two_heads,
        copied_by_hand,
        in_the_middle,
        no_trace,
        one_head,
        cheat,
    )
}


def test_every_exercise_has_its_test() -> None:
    assert set(SOLUTIONS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_solved_as_a_person_would(name: str, page: Page, address: str, runs: Path) -> None:
    page.goto(f"{address}/exercises")
    settle(page)
    page.locator(f".st-key-start-{name} button").click()
    expect(strip(page)).to_contain_text(exercises().files[name].title)
    settle(page)
    expect(solved(page)).to_have_count(0)
    SOLUTIONS[name](page)
    expect(solved(page)).to_be_visible()
    expect(strip(page)).not_to_contain_text("not yet")


def test_the_proof_is_kept_in_the_reader_s_browser_and_opens_solved_in_another(
    new_page: Callable[..., Page], address: str
) -> None:
    student, teacher = new_page(locale="en"), new_page(locale="en")
    student.goto(f"{address}/heads?run=reverse&exercise=reading-head&head=decoder.0.self_attention.2")
    expect(solved(student)).to_be_visible()
    student.get_by_role("button", name="Next exercise").click()
    expect(strip(student)).to_contain_text("Find what a beginner can do")
    expect(student).to_have_url(re.compile("exercise=known-by-a-beginner"))
    student.go_back()
    expect(solved(student)).to_be_visible()
    student.goto(f"{address}/exercises")
    card = student.locator(".st-key-exercise-reading-head")
    expect(card).to_contain_text("Solved before in this browser.")
    expect(student.locator(".st-key-exercise-cheat")).not_to_contain_text("Solved")
    proof = card.get_by_role("link", name="Open the solution").get_attribute("href")
    assert proof
    teacher.goto(f"{address}/exercises")
    settle(teacher)
    expect(teacher.locator(".st-key-exercise-reading-head")).not_to_contain_text("Solved")
    teacher.goto(proof)
    expect(solved(teacher)).to_be_visible()


def test_a_wrong_link_is_said_and_an_exercise_is_left(page: Page, address: str) -> None:
    page.goto(f"{address}/heads?run=reverse&exercise=nonsense")
    expect(page.get_by_text("There is no exercise “nonsense” here.")).to_be_visible()
    expect(strip(page)).to_have_count(0)
    page.goto(f"{address}/heads?run=reverse&exercise=cheat")
    expect(strip(page)).to_contain_text("It begins on the page Accuracy by position.")
    strip(page).get_by_role("button", name="Start again").click()
    expect(page).to_have_url(re.compile("/accuracy[?].*exercise=cheat"))
    settle(page)
    strip(page).get_by_role("button", name="Leave").click()
    expect(strip(page)).to_have_count(0)
    expect(page).to_have_url(re.compile("/accuracy[?](?!.*exercise=)"))
