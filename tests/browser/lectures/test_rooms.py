"""A room: followers predict before the answer, explore and return; a killed server loses nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from dashboard.lectures.shelf import lectures
from dashboard.server.rooms.routes import NO_COOKIE
from tests.browser.lectures.conftest import PROJECTOR, expect_followed_to, join, open_room
from tests.kit.driving import PATIENCE, PHONE, SETTLED, dashboard, free_port
from tests.kit.rooms.house import redis_server, without_redis


def test_one_explores_and_comes_back_and_a_lecturer_may_reload_and_close(
    page: Page, follower: Page, address: str
) -> None:
    """A page that ends early ends for who follows, too, and one that did not come is asked for again."""
    step = lectures().files["attention"].steps[0]
    code = open_room(page, f"{address}/?lecture=attention&sidebar=0&run=reverse")
    expect(page.locator(".st-key-overview-heads")).not_to_be_in_viewport()
    follower.route("**/document/*", lambda route: route.abort(), times=1)
    follower.goto(f"{address}/room/{code}")
    expect(follower.locator("#said")).to_contain_text("could not be shown")
    expect_followed_to(follower, 1)
    expect(follower.locator("#said")).to_be_hidden()
    expect(follower.locator(f".st-key-{step.until}").first).to_be_in_viewport()
    expect(follower.locator(".st-key-overview-heads, .st-key-overview-accuracy")).to_have_count(0)
    page.get_by_role("button", name="Explore from here").click()
    expect(follower.locator(".st-key-overview-heads")).to_have_count(1)
    follower.get_by_role("link", name="Explore on my own").click()
    expect(follower).to_have_url(re.compile(rf"room={code}"))
    follower.get_by_role("link", name=f"Back to room {code}").click()
    expect_followed_to(follower, 1)
    page.reload()
    expect(page.locator(".al-sharing")).to_have_attribute("data-room", code, timeout=PATIENCE)
    page.wait_for_function(SETTLED)
    poster = page.get_by_role("dialog", name=f"Room {code}")
    for end in (
        lambda: page.locator("body").press("ArrowRight"),
        lambda: poster.click(),
        lambda: page.keyboard.press("q"),
    ):
        page.locator("body").press("q")
        expect_filled(page, f"{address}/room/{code}".removeprefix("http://"), code)
        end()
        expect(poster).to_have_count(0)
    expect(page.get_by_text("step 1 of")).to_be_visible()  # a key that ends it does nothing else
    page.locator("body").press("ArrowRight")
    expect_followed_to(follower, 2)
    page.get_by_role("button", name=f"Room {code}").click()
    page.get_by_role("button", name="Close the room").click()
    expect(follower.locator("#said")).to_contain_text("This room is closed")
    follower.reload()
    expect(follower.get_by_text(f"There is no room {code}.")).to_be_visible()


def expect_filled(page: Page, address: str, code: str) -> None:
    """The poster of a room covers the window, and its letters are as high as a twentieth of it, or as wide as it."""
    assert page.viewport_size is not None
    width, height = page.viewport_size["width"], page.viewport_size["height"]
    poster = page.locator(".al-poster")
    expect(poster.locator("img")).to_have_js_property("complete", True)
    assert poster.bounding_box() == {"x": 0, "y": 0, "width": width, "height": height}
    for each in poster.locator("> *").all():
        box = each.bounding_box()
        assert box is not None
        assert min(box["x"], box["y"]) >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= height
    expect(poster.locator("[data-part=code]")).to_have_text(f"Room {code}")
    for part in poster.locator("p").all():
        size = part.evaluate("each => parseFloat(getComputedStyle(each).fontSize)")
        assert size >= height / 20 or part.bounding_box()["width"] > 0.8 * width
    assert poster.locator("[data-part=address]").inner_text().partition("/")[2] == address.partition("/")[2]


def predict(follower: Page, keys: list[str]) -> int:
    """Send bars, of which the first are at an end of their scale: Home or End. Returns the status of the answer."""
    bars = follower.locator(".al-prediction").get_by_role("slider")
    expect(bars).to_have_count(16)
    for number, key in enumerate(keys):
        bars.nth(number).press(key)
    with follower.expect_response("**/votes") as answer:
        follower.get_by_role("button", name="Send the prediction").click()
    return answer.value.status


def test_a_browser_is_one_voter_one_without_cookies_is_none_and_the_answer_waits_for_the_lecturer(
    page: Page, follower: Page, chromium: Browser, address: str
) -> None:
    code = open_room(page, f"{address}/accuracy?run=reverse&lecture=attention&lecture_step=2&sidebar=0")
    join(follower, address, code)
    tally, verdict = page.locator(".tally"), follower.locator(".verdict")
    assert predict(follower, ["End"]) == 204
    expect(verdict).to_contain_text("is sent")
    expect(tally).to_have_text("1 of 1 have predicted.")
    follower.reload()
    expect(verdict).to_contain_text("is sent")
    tab = follower.context.new_page()
    join(tab, address, code)
    assert predict(tab, ["Home"]) == 204
    expect(tally).to_have_text("1 of 2 have predicted.")
    with chromium.new_context(viewport=PHONE) as context:
        other = context.new_page()
        other.add_init_script("const ask = fetch; fetch = (what, how) => ask(what, { ...how, credentials: 'omit' });")
        join(other, address, code)
        assert predict(other, ["End"]) == 403
        expect(other.locator(".verdict")).to_have_text(NO_COOKIE)
        other.reload()
        expect(other.get_by_role("button", name="Send the prediction")).to_be_visible()
        expect(other.locator(".verdict")).to_have_text("")
        expect(tally).to_have_text("1 of 3 have predicted.")
    assert predict(follower, ["Home"] * 7 + ["End"] * 9) == 204
    expect(follower.get_by_role("heading", level=1)).to_have_count(0)
    severe = [each for each in Axe().run(follower).response["violations"] if each["impact"] in ("serious", "critical")]
    assert severe == []
    page.get_by_role("button", name="Show without predicting").click()
    expect(tally).to_contain_text("The room: dots are the means of 1")
    expect(follower.get_by_role("heading", level=1)).to_be_visible()
    expect(verdict).to_contain_text("Your bars are off by")
    percent = page.locator(".bar .truth").evaluate_all("all => all.map((each) => parseFloat(each.style.height))")
    off = sum(abs(truth / 100 - (place >= 7)) for place, truth in enumerate(percent)) / 16
    # Votes are told at intervals: what is shown at first may be those of the moment before.
    close = "([tally, off]) => Math.abs(parseFloat(tally.textContent.match(/off by ([\\d.]+)/)[1]) - off) < 0.006"
    page.wait_for_function(close, arg=[tally.element_handle(), off])


def test_a_killed_server_comes_back_at_the_step(chromium: Browser, runs: Path, follower: Page, tmp_path: Path) -> None:
    if reason := without_redis():
        pytest.skip(reason)
    port = free_port()
    with redis_server(tmp_path) as redis, chromium.new_context(viewport=PROJECTOR) as context:
        lecturer = context.new_page()
        lecturer.set_default_timeout(PATIENCE)
        with dashboard(runs, port=port, killed=True, ATTENTION_LAB_ROOMS=redis.address) as address:
            code = open_room(lecturer, f"{address}/?lecture=masks&sidebar=0&run=reverse")
            join(follower, address, code)
            lecturer.locator("body").press("ArrowRight")
            expect_followed_to(follower, 2)
        expect(follower.locator("#said")).to_contain_text("The connection is lost")
        with dashboard(runs, port=port, ATTENTION_LAB_ROOMS=redis.address):
            expect(follower.locator("#said")).to_be_hidden()
            app = lecturer.locator("[data-testid=stApp]")
            expect(app).to_have_attribute("data-test-connection-state", "CONNECTED")
            expect(app).to_have_attribute("data-test-script-state", "running")  # the new session's first look
            lecturer.wait_for_function(SETTLED)
            expect(lecturer.locator(".al-sharing")).to_have_attribute("data-room", code)
            expect_followed_to(follower, 2)
            expect(lecturer.get_by_text("step 2 of")).to_be_visible()
            lecturer.locator("body").press("ArrowRight")
            expect(lecturer.get_by_text("step 3 of")).to_be_visible()
            expect_followed_to(follower, 3)
