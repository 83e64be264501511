"""A room: followers see each step, predict before the answer, explore and return; a killed server loses nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard.lectures.shelf import lectures
from dashboard.server.rooms.routes import NO_COOKIE
from tests.kit.driving import PATIENCE, SETTLED, dashboard, free_port
from tests.kit.rooms.house import redis_server, without_redis

pytestmark = [pytest.mark.browser, pytest.mark.nightly]
PHONE = {"width": 390, "height": 844}
COVERED = (
    "() => document.querySelector('.st-key-prediction') !== null && !('predicted' in document.documentElement.dataset)"
)
TERMS = """() => {
  const glossary = document.querySelector('.al-glossary').__glossary;
  glossary.read();
  return glossary.found.map(({ name }) => name).sort((one, other) => one.localeCompare(other));
}"""
BARS = "accuracy?run=reverse&lecture=attention&lecture_step=2&sidebar=0"


@pytest.fixture
def lecturer(new_page: Callable[..., Page]) -> Page:
    return new_page(viewport={"width": 1024, "height": 768})


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


def join(follower: Page, address: str, code: str) -> None:
    follower.goto(f"{address}/room/{code.lower()}")
    expect(follower).to_have_url(f"{address}/room/{code}")
    expect(follower.locator("#live")).to_have_attribute("data-document", re.compile("^[0-9a-f]{64}$"))


def step_of(follower: Page, step: int) -> None:
    expect(follower.locator(".lecture .place")).to_contain_text(f"step {step} of")


def test_every_step_comes_to_who_follows(lecturer: Page, follower: Page, address: str) -> None:
    lecture = lectures().files["attention"]
    code = open_room(lecturer, f"{address}/?lecture=attention&sidebar=0")
    join(follower, address, code)
    for at, step in enumerate(lecture.steps, 1):
        step_of(follower, at)
        if lecturer.evaluate(COVERED):
            expect(follower.get_by_role("heading", name=step.title)).to_have_count(0)  # it may tell the answer
            assert step.question is not None
            expect(follower.locator(".al-prediction h2")).to_have_text(step.question.text)
            lecturer.locator("body").press("ArrowRight")
        expect(follower.locator(".lecture h2")).to_have_text(step.title)
        title = lecturer.get_by_role("heading", level=1).first
        expect(title).to_be_visible()
        expect(follower.get_by_role("heading", level=1).first).to_have_text(title.inner_text())
        lecturer.wait_for_function(SETTLED)
        expect(follower.locator("#terms dt")).to_have_text(lecturer.evaluate(TERMS))
        if step.look and step.question is None:  # an answer stands over what was predicted
            expect(follower.locator(f".st-key-{step.look}").first).to_be_in_viewport()
        assert follower.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"], step.title
        if at < len(lecture.steps):
            lecturer.wait_for_function(SETTLED)
            lecturer.locator("body").press("ArrowRight")


def test_a_page_that_ends_early_ends_for_who_follows_too(lecturer: Page, follower: Page, address: str) -> None:
    step = lectures().files["attention"].steps[0]
    code = open_room(lecturer, f"{address}/?lecture=attention&sidebar=0&run=reverse")
    expect(lecturer.locator(".st-key-overview-heads")).not_to_be_in_viewport()
    join(follower, address, code)
    expect(follower.locator(f".st-key-{step.until}").first).to_be_in_viewport()
    expect(follower.locator(".st-key-overview-heads, .st-key-overview-accuracy")).to_have_count(0)
    lecturer.get_by_role("button", name="Explore from here").click()
    expect(follower.locator(".st-key-overview-heads")).to_have_count(1)


def test_a_page_that_did_not_come_is_asked_for_again(lecturer: Page, follower: Page, address: str) -> None:
    code = open_room(lecturer, f"{address}/?lecture=attention&sidebar=0")
    follower.route("**/document/*", lambda route: route.abort(), times=1)
    follower.goto(f"{address}/room/{code}")
    expect(follower.locator("#said")).to_contain_text("could not be shown")
    step_of(follower, 1)
    expect(follower.locator("#said")).to_be_hidden()


def test_predictions_come_back_and_the_answer_waits(
    lecturer: Page, follower: Page, chromium: Browser, address: str
) -> None:
    code = open_room(lecturer, f"{address}/{BARS}")
    join(follower, address, code)
    bars = follower.locator(".al-prediction").get_by_role("slider")
    expect(bars).to_have_count(16)
    for number in range(16):
        bars.nth(number).press("Home" if number < 7 else "End")
    follower.get_by_role("button", name="Send the prediction").click()
    expect(follower.locator(".verdict")).to_contain_text("is sent")
    expect(lecturer.locator(".tally")).to_have_text("1 of 1 have predicted.")
    expect(follower.get_by_role("heading", level=1)).to_have_count(0)
    assert violations_of(follower) == []
    lecturer.get_by_role("button", name="Show without predicting").click()
    expect(lecturer.locator(".tally")).to_contain_text("The room: dots are the means of 1")
    expect(follower.get_by_role("heading", level=1)).to_be_visible()
    expect(follower.locator(".verdict")).to_contain_text("Your bars are off by")
    percent = lecturer.locator(".bar .truth").evaluate_all("all => all.map((each) => parseFloat(each.style.height))")
    off = sum(abs(truth / 100 - (place >= 7)) for place, truth in enumerate(percent)) / 16
    said = lecturer.locator(".tally").inner_text()
    assert float(re.search(r"off by ([\d.]+)", said)[1]) == pytest.approx(off, abs=0.006)  # type: ignore[index]


def predict(follower: Page, key: str) -> int:
    """Send bars, of which one is at an end of its scale: Home or End. Returns the status of the answer."""
    follower.locator(".al-prediction").get_by_role("slider").first.press(key)
    with follower.expect_response("**/votes") as answer:
        follower.get_by_role("button", name="Send the prediction").click()
    return answer.value.status


def test_a_browser_is_one_voter_and_one_without_cookies_is_told_why_it_is_none(
    lecturer: Page, follower: Page, chromium: Browser, address: str
) -> None:
    code = open_room(lecturer, f"{address}/{BARS}")
    join(follower, address, code)
    assert predict(follower, "End") == 204
    expect(follower.locator(".verdict")).to_contain_text("is sent")
    expect(lecturer.locator(".tally")).to_have_text("1 of 1 have predicted.")
    follower.reload()
    expect(follower.locator(".verdict")).to_contain_text("is sent")
    assert predict(follower, "Home") == 204
    tab = follower.context.new_page()
    join(tab, address, code)
    assert predict(tab, "End") == 204
    expect(lecturer.locator(".tally")).to_have_text("1 of 2 have predicted.")
    with chromium.new_context(viewport=PHONE) as context:
        other = context.new_page()
        other.add_init_script("const ask = fetch; fetch = (what, how) => ask(what, { ...how, credentials: 'omit' });")
        join(other, address, code)
        assert predict(other, "End") == 403
        expect(other.locator(".verdict")).to_have_text(NO_COOKIE)
        other.reload()
        expect(other.get_by_role("button", name="Send the prediction")).to_be_visible()
        expect(other.locator(".verdict")).to_have_text("")
        expect(lecturer.locator(".tally")).to_have_text("1 of 3 have predicted.")


def test_one_explores_and_comes_back_and_a_lecturer_may_reload_and_close(
    lecturer: Page, follower: Page, address: str
) -> None:
    code = open_room(lecturer, f"{address}/?lecture=attention&sidebar=0&run=reverse")
    join(follower, address, code)
    follower.get_by_role("link", name="Explore on my own").click()
    expect(follower).to_have_url(re.compile(rf"room={code}"))
    follower.get_by_role("link", name=f"Back to room {code}").click()
    step_of(follower, 1)
    lecturer.reload()
    expect(lecturer.locator(".al-sharing")).to_have_attribute("data-room", code, timeout=PATIENCE)
    lecturer.wait_for_function(SETTLED)
    lecturer.locator("body").press("ArrowRight")
    step_of(follower, 2)
    lecturer.get_by_role("button", name=f"Room {code}").click()
    lecturer.get_by_role("button", name="Close the room").click()
    expect(follower.locator("#said")).to_contain_text("This room is closed")
    follower.reload()
    expect(follower.get_by_text(f"There is no room {code}.")).to_be_visible()


def test_a_killed_server_comes_back_at_the_step(chromium: Browser, runs: Path, follower: Page, tmp_path: Path) -> None:
    if reason := without_redis():
        pytest.skip(reason)
    port = free_port()
    with (
        redis_server(tmp_path) as redis,
        chromium.new_context(viewport={"width": 1024, "height": 768}) as context,
    ):
        lecturer = context.new_page()
        lecturer.set_default_timeout(PATIENCE)
        with dashboard(runs, port=port, killed=True, ATTENTION_LAB_ROOMS=redis.address) as address:
            code = open_room(lecturer, f"{address}/?lecture=masks&sidebar=0&run=reverse")
            join(follower, address, code)
            lecturer.locator("body").press("ArrowRight")
            step_of(follower, 2)
        expect(follower.locator("#said")).to_contain_text("The connection is lost")
        with dashboard(runs, port=port, ATTENTION_LAB_ROOMS=redis.address):
            expect(follower.locator("#said")).to_be_hidden()
            app = lecturer.locator("[data-testid=stApp]")
            expect(app).to_have_attribute("data-test-connection-state", "CONNECTED")
            expect(app).to_have_attribute("data-test-script-state", "running")  # the new session's first look
            lecturer.wait_for_function(SETTLED)
            expect(lecturer.locator(".al-sharing")).to_have_attribute("data-room", code)
            step_of(follower, 2)
            if lecturer.evaluate(COVERED):
                lecturer.locator("body").press("ArrowRight")
            expect(lecturer.get_by_text("step 2 of")).to_be_visible()
            lecturer.locator("body").press("ArrowRight")
            expect(lecturer.get_by_text("step 3 of")).to_be_visible()
            step_of(follower, 3)


def violations_of(follower: Page) -> list[str]:
    """As axe-core finds them; a follower's page is no Streamlit app."""
    from axe_playwright_python.sync_playwright import Axe

    return [
        f"{found['id']}: {node['html']}"
        for found in Axe().run(follower).response["violations"]
        if found["impact"] in ("serious", "critical")
        for node in found["nodes"]
    ]
