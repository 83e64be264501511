"""A lecturer's page, the phone of somebody who follows, and rooms."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.kit.driving import PATIENCE, PHONE, SETTLED

PROJECTOR: ViewportSize = {"width": 1024, "height": 768}
READ = """() => [...document.querySelectorAll('.st-key-prediction *')].every(({ shadowRoot }) => {
  const question = shadowRoot?.querySelector('.al-prediction')?.__prediction;
  return !question || performance.now() > question.since + 400;
})"""
FORGET = """if (location.protocol === 'http:' && !sessionStorage.begun) {
  localStorage.removeItem('attention-lab-predictions');
  sessionStorage.begun = 1;
}"""


@pytest.fixture
def page(page: Page) -> Page:
    """A tab of a browser in which nothing was predicted when it was opened."""
    page.add_init_script(FORGET)
    return page


@pytest.fixture
def follower(chromium: Browser) -> Iterator[Page]:
    """Somebody else's browser: a phone."""
    complaints: list[str] = []
    with chromium.new_context(viewport=PHONE) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
    assert not complaints, "\n".join(complaints)


def see_question(page: Page) -> None:
    """Wait until a question, or its answer, stands there so long that a key is taken as meant for it."""
    page.wait_for_function(READ)


def open_room(lecturer: Page, link: str) -> str:
    """Open a lecture and a room in it; the room's code."""
    lecturer.goto(link)
    sharing = lecturer.locator(".al-sharing")
    expect(sharing).to_have_attribute("data-state", "ready", timeout=PATIENCE)
    lecturer.wait_for_function(SETTLED)
    lecturer.get_by_role("button", name="Share").click()
    lecturer.get_by_role("button", name="Open a room").click()
    expect(sharing).to_have_attribute("data-room", re.compile(r"^[2-9A-Z]{4}$"))
    lecturer.keyboard.press("Escape")
    code = sharing.get_attribute("data-room")
    assert code is not None
    return code


def expect_joined(follower: Page, address: str, code: str) -> None:
    expect(follower).to_have_url(f"{address}/room/{code}")
    expect(follower.locator("#live")).to_have_attribute("data-document", re.compile("^[0-9a-f]{64}$"))


def join(follower: Page, address: str, code: str) -> None:
    follower.goto(f"{address}/room/{code.lower()}")
    expect_joined(follower, address, code)


def expect_followed_to(follower: Page, step: int) -> None:
    expect(follower.locator(".lecture .place")).to_contain_text(f"step {step} of")
