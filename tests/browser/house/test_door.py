"""A newcomer's first minutes: the four pictures, a training, digits of one's own, at three widths."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard.server.private_names import exists
from tests.kit.driving import PATIENCE, ROOT, SETTLED, dashboard, listen, out_strip, title
from tests.kit.waiting import wait_for

ANY = "This transformer reads up to eight digits and writes them backwards."
WIDTHS = (1440, 1024, 390)
FOCUSED = """() => {
  let found = document.activeElement;
  while (found.shadowRoot?.activeElement) found = found.shadowRoot.activeElement;
  return found.className;
}"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the run on which the first page opens."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("reverse", "reverse-any"):
        shutil.copytree(ROOT / "checkpoints" / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def door(chromium: Browser, runs: Path) -> Iterator[str]:
    with dashboard(runs) as address:
        yield address


@pytest.fixture
def visit(chromium: Browser, door: str, stillness: None) -> Iterator[Callable[..., Page]]:
    """Opens the first page in a window of this width; nothing may complain."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def make(width: int, **options: Any) -> Page:
        contexts.append(chromium.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(PATIENCE)
        listen(page, door, complaints)
        page.goto(door)
        expect(title(page)).to_have_text(ANY)
        expect(out_strip(page)).to_be_visible()
        return page

    yield make
    for each in contexts:
        each.close()
    assert not complaints, "\n".join(complaints)


def says(question: str) -> re.Pattern[str]:
    """The words of a question that is answered backwards and right."""
    asked, said = ", ".join(question), ", ".join(f"{digit} right" for digit in reversed(question))
    return re.compile(rf"^in: {asked}\. out: {said}\.$")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_newcomer_types_digits_and_finds_the_four_pictures(visit: Callable[..., Page], width: int) -> None:
    page = visit(width)
    expect(out_strip(page)).to_have_attribute("aria-label", says("31415926"))
    field = page.locator("input.typed")
    field.click()
    page.keyboard.type("1 2 x 3")
    expect(out_strip(page)).to_have_attribute("aria-label", says("123"))
    expect(title(page)).to_have_text(ANY)
    expect(page).to_have_url(re.compile(r"input=1\+2\+3"))
    page.keyboard.type("45678999")  # one more than there is room for
    expect(out_strip(page)).to_have_attribute("aria-label", says("12345678"))
    for name, picture in (
        ("Positional encoding", ".al-plot[data-state=ready]"),
        ("Attention heads", "[data-panels='8']"),
        ("Mask effects", ".al-plot[data-state=ready]"),
        ("Accuracy by position", ".al-plot[data-state=ready]"),
    ):
        page.get_by_test_id("stMain").get_by_role("link", name=re.compile(f"^{name}")).click()
        expect(title(page)).not_to_have_text(ANY)  # the page before has such pictures, too
        expect(page.locator(picture).first).to_be_visible()
        page.go_back()
        expect(title(page)).to_have_text(ANY)


def test_an_answer_pointed_at_shows_what_its_head_reads_in_all_pictures(visit: Callable[..., Page]) -> None:
    page = visit(1440)
    expect(page.locator(".al-plot[data-state=ready]").first).to_be_visible()
    strip = out_strip(page)
    expect(strip).to_have_attribute("data-draws", re.compile(r"\d"))
    strip.focus()
    page.keyboard.press("ArrowRight")
    said = page.locator(".arcs ~ .foot .sentence")
    expect(said).to_have_text(
        re.compile(r"^Answer 1 is 6, right\. For it, head \d\.\d puts \d\.\d\d of its attention on ")
    )
    cell = strip.evaluate("host => host.__arcs.cell")
    wait_for(
        "the large head shows the same cell",
        lambda: page.locator(".st-key-overview-pattern").text_content() or "",
        lambda words: f"at {cell['column'] + 1}" in words,
    )
    page.keyboard.press("Escape")
    expect(said).to_have_text("")


def test_a_model_of_one_length_offers_to_learn_all_when_it_is_asked_for_another(
    visit: Callable[..., Page], door: str
) -> None:
    page = visit(1440)
    page.goto(f"{door}/?run=reverse")
    expect(title(page)).to_have_text("This transformer reads eight digits and writes them backwards.")
    page.locator("input.typed").click()
    page.keyboard.type("123")
    expect(title(page)).to_have_text(
        re.compile("^This transformer was trained on eight digits only: of three digits, ")
    )
    page.get_by_role("button", name="Train one on 1 to 8 symbols").click()
    expect(page.get_by_test_id("stSidebar").get_by_text(re.compile("length 1 to 8"))).to_be_visible()


@pytest.mark.parametrize("typed", ["3 1 4", "314", "3,1,4"])
def test_what_is_typed_means_the_same_on_the_page_and_in_the_sidebar(visit: Callable[..., Page], typed: str) -> None:
    page = visit(1440)
    beside = page.get_by_test_id("stSidebar").get_by_label("The question", exact=True)
    page.locator("input.typed").click()
    page.keyboard.type(typed)
    expect(out_strip(page)).to_have_attribute("aria-label", says("314"))
    expect(beside).to_have_value("3 1 4")
    beside.fill("2")
    beside.press("Enter")
    expect(out_strip(page)).to_have_attribute("aria-label", says("2"))
    beside.fill(typed)
    beside.press("Enter")
    expect(out_strip(page)).to_have_attribute("aria-label", says("314"))


def test_what_cannot_be_typed_is_refused_in_the_same_words(visit: Callable[..., Page]) -> None:
    page = visit(1440)
    beside = page.get_by_test_id("stSidebar").get_by_label("The question", exact=True)
    said = page.locator(".arcs ~ .foot .sentence")
    for typed, kept, refusal in (
        ("31x", "31", "“x” is not a symbol of this task: use 0 to 9."),
        ("123456789", "12345678", "Type 1 to 8 symbols, 0 to 9: these are 9."),
    ):
        page.locator("input.typed").fill(typed)
        expect(said).to_have_text(refusal)
        expect(out_strip(page)).to_have_attribute("aria-label", says(kept))  # the next question takes a notice away
        beside.fill(typed)
        beside.press("Enter")
        expect(page.get_by_test_id("stSidebar").get_by_text(refusal)).to_be_visible()


def test_the_question_is_reached_from_the_skip_link(visit: Callable[..., Page]) -> None:
    page = visit(1440)
    expect(page.locator("input.typed")).to_be_attached()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to main content")).to_be_focused()
    page.keyboard.press("Enter")
    for _ in range(4):
        if "typed" in page.evaluate(FOCUSED):
            break
        page.keyboard.press("Tab")
    assert "typed" in page.evaluate(FOCUSED)


def test_on_a_phone_a_training_that_was_begun_in_the_sidebar_is_seen(visit: Callable[..., Page]) -> None:
    page = visit(390)
    opened = page.get_by_test_id("stExpandSidebarButton")
    assert opened.evaluate("e => getComputedStyle(e, '::after').content") == '"Pages, model and training"'
    opened.click()
    page.get_by_test_id("stSidebar").get_by_test_id("stBaseButton-primary").click()
    expect(page.locator(".st-key-training")).to_be_visible()
    expect(opened).to_be_visible()  # the sidebar lies over it no more


def test_on_a_phone_the_menu_goes_once_a_page_was_chosen_in_it(visit: Callable[..., Page]) -> None:
    page = visit(390)
    opens = page.get_by_test_id("stExpandSidebarButton")
    opens.click()
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Positional encoding").click()
    expect(page).to_have_url(re.compile("/positions"))
    expect(opens).to_be_visible()
    opens.click()  # it can be opened again, and stays
    page.wait_for_function(SETTLED)
    another = page.get_by_test_id("stSidebarNavLink").filter(has_text="Mask effects")
    another.scroll_into_view_if_needed()
    expect(another).to_be_in_viewport()


BUSY = """() => {
  const place = document.createElement('div');
  place.className = 'stElementContainer';
  place.innerHTML = '<div class="stSpinner" data-testid="stSpinner">Measuring …</div>';
  document.querySelector('h1').closest('.stElementContainer').before(place);
}"""
"""Puts above the title what Streamlit draws while something is measured."""


@pytest.mark.parametrize("width", WIDTHS)
def test_what_says_that_something_is_measured_moves_nothing(visit: Callable[..., Page], width: int) -> None:
    assert exists("streamlit/static/static/js/*.js: stSpinner")
    page = visit(width)
    before = title(page).bounding_box()
    page.evaluate(BUSY)
    note = page.get_by_test_id("stSpinner")
    expect(note).to_be_in_viewport(ratio=1)
    assert title(page).bounding_box() == before


def test_on_a_projector_a_training_leaves_the_title_and_the_picture_in_sight(visit: Callable[..., Page]) -> None:
    page = visit(1024, screen={"width": 1024, "height": 768})
    page.set_viewport_size({"width": 1024, "height": 768})
    page.get_by_test_id("stSidebar").get_by_test_id("stBaseButton-primary").click()
    expect(page.locator(".st-key-training canvas").first).to_be_visible()
    for each in (title(page), out_strip(page)):
        expect(each).to_be_in_viewport()
