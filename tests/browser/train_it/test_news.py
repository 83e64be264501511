"""A page is drawn anew when there is news, and only then; also where nobody can tell it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, WebSocket, expect

from tests.kit.driving import SETTLED, go_to, wait_until_painted
from tests.kit.runs import tiny
from tests.kit.waiting import wait_for
from transformer.training import lock
from transformer.training.runs import Run

HIDE = """(hidden) => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


class Played:
    """A training that this test plays: it holds the lock of its folder, and writes what is seen of it."""

    def __init__(self, run: Run, leave: Callable[[], None]) -> None:
        self.run, self.steps, self._leave = run, 0, leave

    def step(self) -> int:
        """Take one, and say so; which it was."""
        self.steps += 1
        line = {"step": self.steps, "loss": 2.0, "learning_rate": 0.001, "gradient_norm": 1.0, "seconds": 0.1}
        with (self.run.folder / "metrics.jsonl").open("a") as lines:
            lines.write(f"{json.dumps(line)}\n")
        self.say("running")
        return self.steps

    def say(self, status: str) -> None:
        self.run.set_state(status, self.steps)

    def end(self) -> None:
        """Be stopped by hand, without a film."""
        self.say("stopped")
        self._leave()


@pytest.fixture
def played(runs: Path, request: pytest.FixtureRequest) -> Iterator[Played]:
    run = Run.create(runs / f"played-{abs(hash(request.node.name)) % 10_000}", tiny(max_steps=1000))
    with ExitStack() as process:
        process.enter_context(lock.hold(run.folder))
        training = Played(run, process.close)
        training.step()
        yield training
        training.end()


def headline(page: Page, step: int) -> None:
    """The panel says this step."""
    words = page.locator(".st-key-training p").first
    expect(words).to_contain_text(f"step {step} of")


class Heard:
    """What a page and its server say to each other: the sockets of news, and how often the page asks Streamlit."""

    def __init__(self, page: Page) -> None:
        self.sockets: list[WebSocket] = []
        self.asked = self.told = 0
        page.on("websocket", self._opened)

    def _opened(self, socket: WebSocket) -> None:
        if socket.url.endswith("/news"):
            self.sockets.append(socket)
            socket.on("framereceived", self._count("told"))
        else:
            socket.on("framesent", self._count("asked"))

    def _count(self, what: str) -> Callable[[object], None]:
        return lambda frame: setattr(self, what, getattr(self, what) + 1)

    @property
    def open(self) -> int:
        return sum(not socket.is_closed() for socket in self.sockets)


def watch(page: Page, address: str, played: Played) -> Heard:
    """Look at its panel, until it stands still; once the server has nothing more to prepare, which is news, too."""
    wait_for(
        "a server that is ready", lambda: page.request.get(f"{address}/ready").status, lambda status: status == 200
    )
    heard = Heard(page)
    page.goto(f"{address}/?run=reverse")
    wait_until_painted(page, plots=3)
    page.get_by_role("button", name="Watch").click()
    headline(page, played.steps)
    page.wait_for_function(SETTLED)
    return heard


def test_a_page_is_drawn_anew_with_each_news_and_never_without(page: Page, address: str, played: Played) -> None:
    heard = watch(page, address, played)
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
    heard = watch(page, address, played)
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
    watch(page, address, played)
    headline(page, played.step())
    for socket, _ in server[:1]:
        socket.close(code=1012)
    for _ in range(3):
        headline(page, played.step())
    if how == "closed later":
        wait_for("it is tried again", lambda: page.wait_for_timeout(10) or len(server), lambda times: times >= 2)
        headline(page, played.step())
    assert len(said) == 1
