"""A tab of a real browser: when it is painted, and what it has received, for benchmarks/explore.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from playwright.sync_api import Browser, CDPSession, Error, Page

from kit.pages import give_up

SCREEN = {"width": 1440, "height": 900}
PATIENCE = 120.0
"""Seconds in which a tab is painted, or never."""
PROGRAM = {"Script", "Stylesheet", "Font", "Image", "Manifest"}
"""Kinds of files that belong to a program, whatever it shows."""

WATCH = """
window.find = (root, name) => {
  for (const each of root.querySelectorAll('*')) {
    if (each[name]) return each;
    const found = each.shadowRoot && find(each.shadowRoot, name);
    if (found) return found;
  }
};
window.drawn = new Set();
const fill = CanvasRenderingContext2D.prototype.fill;
CanvasRenderingContext2D.prototype.fill = function (...all) {
  drawn.add(this.canvas);
  return fill.apply(this, all);
};
window.watch = (ready, name = 'finished') => {
  delete document.documentElement?.dataset[name];
  const tell = () => (document.documentElement.dataset[name] = performance.now());
  const look = () => requestAnimationFrame(() => (ready() ? requestAnimationFrame(tell) : look()));
  look();
};
addEventListener('click', (event) => (window.clicked = event.timeStamp), true);
"""
"""Put into each tab before anything else. When it was, the root says: `data-finished`, ms since the navigation."""


@contextmanager
def one_chromium() -> Iterator[Browser]:
    """One Chromium; where there is none, the benchmark ends."""
    from tests.kit.driving import browser  # found once the benchmark has put the checkout on the path

    with ExitStack() as stack:
        try:
            chromium = stack.enter_context(browser())
        except Error as error:
            give_up(f"no Chromium can be started: {error.message.splitlines()[0]}")
        yield chromium


class Tab:
    """A page with an empty cache. `whole` and `data` count the bytes of what it has received (bodies and frames)."""

    def __init__(self, page: Page, network: CDPSession) -> None:
        self.page = page
        self.whole = self.data = 0
        self._programs: dict[str, bool] = {}
        self._errors: list[str] = []
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", lambda error: self._errors.append(str(error).splitlines()[0]))
        network.on("Network.responseReceived", self._began)
        network.on("Network.dataReceived", self._received)
        network.on("Network.webSocketFrameReceived", self._framed)
        network.send("Network.enable")

    def _began(self, event: dict) -> None:
        self._programs[event["requestId"]] = event["type"] in PROGRAM

    def _received(self, event: dict) -> None:
        self.whole += event["dataLength"]
        self.data += 0 if self._programs.get(event["requestId"]) else event["dataLength"]

    def _framed(self, event: dict) -> None:
        frame = event["response"]
        text: str = frame["payloadData"]
        binary = frame["opcode"] == 2  # then it is written in base64
        size = len(text) * 3 // 4 - text[-2:].count("=") if binary else len(text.encode())
        self.whole += size
        self.data += size

    def open(self, address: str, ready: str) -> float:
        """Seconds until JavaScript's `ready` is true and painted. Raises playwright's Error when that fails."""
        self.page.add_init_script(f"{WATCH}\nwatch({ready});")
        self.page.goto(address, wait_until="commit")
        return self.finished()

    def passes(self, address: str, stages: dict[str, str]) -> dict[str, float]:
        """Seconds until each of these is true and painted, by its name."""
        watched = "\n".join(f"watch({ready}, {name!r});" for name, ready in stages.items())
        self.page.add_init_script(f"{WATCH}\n{watched}")
        self.page.goto(address, wait_until="commit")
        for name in stages:
            self.page.wait_for_selector(f"html[data-{name}]", state="attached", timeout=1000 * PATIENCE)
        found = self.page.evaluate("() => ({ ...document.documentElement.dataset })")
        return {name: float(found[name]) / 1000 for name in stages}

    def watch(self, ready: str, name: str = "finished") -> None:
        """From now on wait for this."""
        self.page.evaluate(f"watch({ready}, {name!r})")

    def finished(self, name: str = "finished") -> float:
        """When what is watched was painted, in seconds since the navigation."""
        found = self.page.wait_for_selector(f"html[data-{name}]", state="attached", timeout=1000 * PATIENCE)
        assert found is not None
        return float(found.get_attribute(f"data-{name}") or 0) / 1000

    def clicked(self) -> float:
        """When the last click happened, in seconds since the navigation."""
        return float(self.page.evaluate("clicked")) / 1000

    def quiet(self, milliseconds: float) -> None:
        """Wait until nothing has been received for so long."""
        before = -1
        while self.whole > before:
            before = self.whole
            self.page.wait_for_timeout(milliseconds)

    def why(self, error: Error) -> str:
        """A failure in a few words."""
        if self._errors:
            return self._errors[0][:80]
        if "crash" in error.message.lower():
            return "the tab crashed"
        return f"not within {PATIENCE:.0f} s" if "Timeout" in error.message else error.message.splitlines()[0][:80]


@contextmanager
def open_tab(chromium: Browser) -> Iterator[Tab]:
    """A new tab that shares nothing with the others."""
    context = chromium.new_context(viewport=SCREEN)
    try:
        page = context.new_page()
        yield Tab(page, context.new_cdp_session(page))
    finally:
        context.close()
