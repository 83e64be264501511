"""A newcomer's first minutes: the four pictures, a training, digits of one's own, at three widths."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.driving import PATIENCE, ROOT, dashboard, listen, out_strip, title
from tests.kit.waiting import wait_for

ANY = "This transformer reads up to eight digits and writes them backwards."
WIDTHS = (1440, 1024, 390)


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
