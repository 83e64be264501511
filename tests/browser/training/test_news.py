"""A page is drawn anew when there is news, and only then; also where nobody can tell it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.kit.driving import Heard, descriptors, go_to, headline, wait_until_painted, watch
from tests.kit.runs import Played, playing
from tests.kit.waiting import wait_for

HIDE = """(hidden) => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


@pytest.fixture
def played(runs: Path, address: str, page: Page, request: pytest.FixtureRequest) -> Iterator[Played]:
    wait_for(  # what it prepares is news, too
        "a server that is ready", lambda: page.request.get(f"{address}/ready").status, lambda status: status == 200
    )
    with playing(runs / f"played-{abs(hash(request.node.name)) % 10_000}") as training:
        yield training


def test_a_page_is_drawn_anew_with_each_news_and_never_without(page: Page, address: str, played: Played) -> None:
    heard = watch(page, address, played.steps)
    for _ in range(3):
        headline(page, played.step())
    played.run.ask(pause_at=0)
    played.say("paused")
    expect(page.locator(".st-key-training p").first).to_contain_text("is paused at step")
    page.wait_for_timeout(500)  # what was said last is drawn
    asked, told = heard.asked, heard.told
    for _ in range(10):  # signs of life, which the watcher looks at for a second
        played.say("paused")
        page.wait_for_timeout(100)
    assert (heard.asked, heard.told) == (asked, told)
    assert len(heard.sockets) == 1
    go_to(page, "The machine")  # with a second live view, over the same socket
    page.get_by_text("has not kept two steps yet").wait_for()
    played.run.ask(pause_at=None)
    headline(page, played.step())
    assert heard.open == 1
    played.end()
    expect(page.locator(".st-key-training p").first).to_contain_text("stopped")
    still = wait_for("nothing is followed any more", lambda: page.wait_for_timeout(10) or heard.open, lambda n: not n)
    assert not still


def test_a_hidden_tab_asks_for_nothing_and_once_when_it_is_seen_again(page: Page, address: str, played: Played) -> None:
    heard = watch(page, address, played.steps)
    page.evaluate(HIDE, True)
    page.wait_for_timeout(500)  # what was asked for before is answered
    asked, told = heard.asked, heard.told
    for _ in range(5):
        played.step()
        page.wait_for_timeout(200)
    assert heard.asked == asked
    assert heard.told > told
    page.evaluate(HIDE, False)
    headline(page, played.steps)
    assert heard.asked == asked + 1


@pytest.mark.parametrize("how", ["refused", "closed later"])
def test_where_the_socket_does_not_come_through_the_page_asks_by_the_clock(
    new_page: Callable[..., Page], address: str, played: Played, how: str
) -> None:
    page = new_page(viewport={"width": 1440, "height": 900})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if "news do not come" in message.text else None)
    server = []
    if how == "refused":
        page.route_web_socket("**/news", lambda socket: socket.close(code=1013))
    else:
        page.route_web_socket("**/news", lambda socket: server.append((socket, socket.connect_to_server())))
    watch(page, address, played.steps)
    headline(page, played.step())
    for socket, _ in server[:1]:
        socket.close(code=1012)
    for _ in range(3):
        headline(page, played.step())
    if how == "closed later":
        wait_for("it is tried again", lambda: page.wait_for_timeout(10) or len(server), lambda times: times >= 2)
        headline(page, played.step())
    assert len(said) == 1


TABS = 12
"""Twice as many as a browser opens plain connections to one server."""


@pytest.mark.nightly
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="nothing lists what another process has open")
def test_many_tabs_of_one_browser_follow_a_training_and_none_that_follows_nothing_or_has_gone_keeps_a_socket(
    new_page: Callable[..., Page], address: str, played: Played
) -> None:
    before = descriptors(address)
    tabs = [new_page() for _ in range(TABS)]
    heard = [watch(tab, address, played.steps) for tab in tabs]
    step = played.step()
    for tab in tabs:
        headline(tab, step)
    assert [each.open for each in heard] == [1] * TABS
    played.end()
    for tab in tabs:
        expect(tab.locator(".st-key-training p").first).to_contain_text("stopped")
    wait_for("nobody keeps one", lambda: tabs[0].wait_for_timeout(10) or sum(each.open for each in heard), (0).__eq__)
    late = new_page()
    listening = Heard(late)
    late.goto(f"{address}/?run=reverse")
    wait_until_painted(late, plots=3)
    assert not listening.sockets
    for tab in (*tabs, late):
        tab.close()
    wait_for("all descriptors are back", lambda: descriptors(address), lambda open_: open_ <= before + 2)
