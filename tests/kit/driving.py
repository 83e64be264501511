"""A real dashboard and a real browser, for the tests and for the README's picture."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    Playwright,
    Request,
    ViewportSize,
    WebSocket,
    expect,
    sync_playwright,
)
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from dashboard.view import pages
from tests.kit import waiting
from tests.kit.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
PHONE: ViewportSize = {"width": 390, "height": 844}
STREAMLITS_MENU = ("list:", "listitem:")
"""On a narrow screen the menus stand in the sidebar, in a list that Streamlit nests wrongly (1.67)."""
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
PAGES = {
    "Overview": 3,
    "Lectures": 0,
    "Attention heads": 3,
    "The machine": 1,
    "Inside a head": 3,
    "Inside a block": 3,
    "Through the layers": 6,
    "Training film": 2,
    "Mask effects": 5,
    "Follow the information": 3,
    "Edits": 3,
    "Positional encoding": 8,
    "Positions at work": 5,
    "Accuracy by position": 2,
    "Runs and races": 1,
    "Populations": 3,
    "What positions buy": 4,
    "Tokens and windows": 1,
    "It writes": 1,
    "Square corners": 4,
    "Attention by hand": 5,
    "Five questions": 1,
    "Gallery of mistakes": 6,
    "Exercises": 0,
    "The bottleneck": 4,
    "It reads": 7,
    "Bring in a model": 2,
    "Its layers": 2,
    "Change its attention": 2,
    "Check mine": 0,
}
"""The pages, and how many plots stand on each for a reader who has chosen no model."""
MENUS = {each.title: "" if each.stands_in_bar else each.menu for each in pages.PAGES.values()}
"""The menu of each page; empty where it stands in the bar by itself. On a screen that has just become wider it is there
a tenth of a second later."""
SCRIPTS = "/_stcore/bidi-components/attention-lab.shared"
"""The address below which each script of web/ can be imported by itself."""
PATIENCE, ATTEMPTS = 1000 * waiting.PATIENCE, 5
"""Milliseconds for which anything on a page is waited for, as Playwright wants them."""
PATIENCES = [PATIENCE * 2**attempt / (2**ATTEMPTS - 1) for attempt in range(ATTEMPTS)]
"""For which each of several attempts is waited for: twice as long as the one before, PATIENCE together."""
DOWNLOAD = 300
"""Seconds that the download of a browser may take."""


def chromium_path() -> str | None:
    """The Chromium of this system; None lets Playwright look for its own.

    The one without windows first: a tab with an empty profile costs it an eighth of the processor time.
    """
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def download() -> None:
    """Put Playwright's own Chromium into the user's cache, where it stays. Raises Error when that cannot be done."""
    command = [sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD)
    except subprocess.TimeoutExpired:
        raise Error(f"its download took longer than {DOWNLOAD} s") from None
    if ended.returncode:
        said = (line for line in ended.stderr.splitlines() if "Error" in line)
        raise Error(f"its download failed: {next(said, 'playwright install says not why')}")


_playing: list[Playwright] = []
"""The one Playwright of this process, while a browser is open, once for each: beside it no second can be started."""


@contextmanager
def _playwright() -> Iterator[Playwright]:
    """The one that is there, else a new one, which ends with the last browser."""
    _playing.append(_playing[0] if _playing else sync_playwright().start())
    try:
        yield _playing[0]
    finally:
        last = _playing.pop()
        if not _playing:
            last.stop()


@contextmanager
def browser(*arguments: str) -> Iterator[Browser]:
    """One Chromium: the system's, else Playwright's own, got if need be. Raises Error when there is none."""
    expect.set_options(timeout=PATIENCE)
    with _playwright() as playwright:
        try:
            chromium = playwright.chromium.launch(executable_path=chromium_path(), args=[*ARGUMENTS, *arguments])
        except Error:
            download()
            chromium = playwright.chromium.launch(args=[*ARGUMENTS, *arguments])
        try:
            yield chromium
        finally:
            chromium.close()


@contextmanager
def browser_of_a_test(*arguments: str) -> Iterator[Browser]:
    """The same for a test: without a browser it is skipped, and fails where REQUIRE_BROWSER=1 says it must be there."""
    import pytest  # benchmarks drive pages without it

    with ExitStack() as stack:
        try:
            chromium = stack.enter_context(browser(*arguments))
        except Error as error:
            why = error.message.splitlines()[0]
            reason = f"no Chromium can be started ({why}); install one, for instance by apt install chromium"
            if os.environ.get("REQUIRE_BROWSER") == "1":
                pytest.fail(reason)
            pytest.skip(reason)
        yield chromium


@contextmanager
def dashboard(
    runs: Path | None = None,
    log: Path | None = None,
    port: int | None = None,
    killed: bool = False,
    files: int | None = None,
    **variables: str,
) -> Iterator[str]:
    """The dashboard as a user starts it, on a free port; yields its address. What it prints goes to `log`.

    `variables` are added to its environment, and it may have so many `files` open. It is told to end, or `killed`.
    """
    environment = os.environ | {"NO_COLOR": "1"} | ({"ATTENTION_LAB_RUNS": str(runs)} if runs else {}) | variables
    port = port or free_port()
    limit = [] if files is None else ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh"]
    command = [*limit, sys.executable, "-m", "streamlit", "run", "dashboard/app.py", "--server.headless", "true"]
    address = f"http://localhost:{port}"
    with serving([*command, "--server.port", str(port)], address, log, killed, cwd=ROOT, env=environment):
        yield address


@contextmanager
def serving(
    command: list[Any], address: str, log: Path | None = None, killed: bool = False, **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that serves the dashboard at an address, once it does."""
    with (log or Path(os.devnull)).open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, **options)
        try:
            wait_until_healthy(address, process)
            yield process
        finally:
            process.kill() if killed else process.terminate()
            process.wait(waiting.PATIENCE)


def descriptors(address: str) -> int:
    """How many file descriptors the server at an address of ours has open. Linux alone lists those of others."""
    port = address.rpartition(":")[2].partition("/")[0]
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        words = each.read_bytes().split(b"\0") if os.access(each, os.R_OK) else []
        if port.encode() in words and b"run" in words:
            return len(os.listdir(each.parent / "fd"))
    raise AssertionError(f"nothing was started on port {port}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_healthy(address: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for the server's own word that it is up. Raises AssertionError when it ends or stays silent."""

    def health() -> int | OSError:
        assert process.poll() is None, f"the dashboard ended with exit code {process.returncode}"
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=waiting.PATIENCE) as answer:
                return int(answer.status)
        except OSError as error:
            return error

    wait_for("the dashboard is up", health, lambda status: status == 200)


def listen(page: Page, address: str, complaints: list[str]) -> None:
    """Note every error that a page logs or meets, and every request to another server than its own."""

    def logged(message: ConsoleMessage) -> None:
        url = message.location.get("url", "")
        if message.type == "error":
            complaints.append(f"{message.text} ({url})")

    def asked(request: Request) -> None:
        if urlsplit(request.url).scheme in ("http", "https") and not request.url.startswith(f"{address}/"):
            complaints.append(f"asked another server: {request.url}")

    page.on("console", logged)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", asked)


# What stands on a page. Streamlit's own test ids are used where a person would use their eyes.


def go_to(page: Page, name: str) -> None:
    """Go to another page by the navigation of a wide screen, in whichever of its menus it is."""
    before = urlsplit(page.url).path
    (wanted,) = (each for each in pages.PAGES.values() if each.title == name)
    first = wanted.tabs[0]
    bar, menu, entry = page.get_by_test_id("stTopNav"), MENUS[name], first.entry or name
    if before.strip("/") not in {each.address for each in wanted.tabs}:
        if menu:
            section = bar.get_by_test_id("stTopNavSection").filter(has_text=menu)
            _pick(section, page.get_by_role("menuitem", name=entry))
        else:
            bar.get_by_role("link", name=entry).click()
        page.wait_for_url(lambda url: urlsplit(url).path != before)
        before = f"/{first.address}"
    if wanted is not first or before != f"/{first.address}":
        page.locator(".st-key-tabs").get_by_role("link", name=name).click()
        page.wait_for_url(lambda url: urlsplit(url).path != before)


def query(**values: str) -> re.Pattern[str]:
    """An address that holds these parameters, as the browser writes them."""
    return re.compile("".join(f"(?=.*[?&]{name}={re.escape(value)}(&|$))" for name, value in values.items()))


def title(page: Page) -> Locator:
    return page.locator("[data-testid=stMain] h1")


def see_title_at_last(page: Page, words: str) -> None:
    """Wait until the title says so: a training may take long on a busy machine, as long as its title goes on."""
    while words not in (seen := title(page).text_content() or ""):
        expect(title(page)).not_to_have_text(seen)


def plot(page: Page, key: str) -> Locator:
    """The plot of a key, once it is painted."""
    return page.locator(f".st-key-{key} .al-plot[data-state=ready]")


def grid(page: Page) -> Locator:
    """The head grid; it stands in a shadow root, which Playwright looks into."""
    return page.locator(".grid[data-focus]")


def out_strip(page: Page) -> Locator:
    """What is asked and said, in the words of a screen reader: "in: 3, 1. out: 1 right, 3 right."."""
    return page.locator(".arcs[aria-label^='in:']")


def wait_until_painted(page: Page, plots: int) -> None:
    """Wait until the script has ended, nothing is pale, and each of `plots` figures and the head grid are painted."""
    ready, failed = page.locator(".al-plot[data-state=ready]"), page.locator("[data-testid=stException]")
    if plots:
        ready.nth(plots - 1).or_(failed).first.wait_for(timeout=PATIENCE)
    assert failed.count() == 0, "the page shows an error; the server's log has its traceback"
    expect(ready).to_have_count(plots)
    expect(page.locator("[data-testid=stSkeleton]")).to_have_count(0)
    page.wait_for_function(SETTLED)
    for canvas in page.locator(".grid canvas.base").all():
        wait_for("the head grid is painted in 8 colours", lambda canvas=canvas: colours(canvas), lambda n: n >= 8)


def colours(canvas: Locator) -> int:
    """How many different colours are on a canvas: 1 while it is blank."""
    count: int = canvas.evaluate(
        """canvas => {
          if (!canvas.width || !canvas.height) return 0;
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          return new Set(new Uint32Array(data.buffer)).size;
        }"""
    )
    return count


def traces(figure: Locator) -> list[dict[str, Any]]:
    """Type, name and number of points of each trace that a plot shows, as Plotly holds them."""
    found: list[dict[str, Any]] = figure.evaluate(
        """host => host.querySelector('.js-plotly-plot')._fullData.map(
          ({ type, name, x, z }) => ({ type, name, points: (z ?? x).length })
        )"""
    )
    return found


def spot(host: Locator, place: str, argument: object = None) -> tuple[float, float]:
    """Where a spot of an element stands in the window: scrolled into view, and once nothing there moves any more.

    `place` is JavaScript: from the element and the `argument` to [x, y] in the window, or null while it is nowhere.
    """
    x, y = wait_for(f"a spot of {host} that stands still", lambda: host.evaluate(STILL % place, argument))
    return x, y


def point_at(host: Locator, place: str, argument: object = None) -> None:
    """Move the pointer to a spot of an element, and see that it is still there."""
    mouse = host.page.mouse

    def pointed() -> bool:
        x, y = spot(host, place, argument)
        mouse.move(x - 3, y - 3)  # Plotly hovers on movement
        mouse.move(x, y)
        return spot(host, place, argument) == (x, y)

    wait_for("the pointer is at what it was moved to", pointed)


def click_at(host: Locator, place: str, argument: object = None) -> None:
    """Click on a spot of an element."""
    drag(host, place, argument)


def drag(host: Locator, place: str, *arguments: object) -> None:
    """Drag over spots of an element, one for each argument, in a leap from one to the next; a click where it is one."""
    mouse = host.page.mouse
    point_at(host, place, arguments[0])
    mouse.down()
    for each in arguments[1:]:
        mouse.move(*spot(host, place, each))
    mouse.up()


STILL = """async (host, argument) => {
  const place = (%s), frame = () => new Promise(requestAnimationFrame), middle = innerHeight / 2;
  const out = ([, y]) => Math.abs(y - middle) > 0.8 * middle; // out of sight, or under the bar of menus
  let at = host.isConnected ? place(host, argument) : null;
  if (at && out(at)) {
    const { top, height } = host.getBoundingClientRect(), whole = height < 1.6 * middle;
    const scrolled = document.querySelector('[data-testid=stMain]');
    scrolled.scrollBy({ top: (whole ? top + height / 2 : at[1]) - middle, behavior: 'instant' });
  }
  for (let still = 0; at && still < 3; ) {
    await frame();
    const now = host.isConnected ? place(host, argument) : null;
    still = now && Math.hypot(now[0] - at[0], now[1] - at[1]) < 0.5 ? still + 1 : 0;
    at = now;
  }
  return at;
}"""
"""Where a spot is that has stood still for three frames; null where its element was taken from the page meanwhile."""
PAINTED = """(host, [row, column]) => {
  const { layout: { box }, ratio } = host.__painter, { left, top } = host.getBoundingClientRect();
  return [left + (box.x + (column + 0.5) * box.step) / ratio, top + (box.y + (row + 0.5) * box.step) / ratio];
}"""
"""Of a painter: the middle of a cell [row, column], counted from 0."""
HEATMAP = """(host, [row, column]) => {
  const stage = host.querySelector('.js-plotly-plot');
  const { left, top } = stage.getBoundingClientRect();
  const { xaxis, yaxis } = stage._fullLayout;
  return [left + xaxis._offset + xaxis.c2p(column), top + yaxis._offset + yaxis.c2p(row)];
}"""
"""Of a heatmap: a cell [row, column], counted from 0."""
HEAD = """(host, [row, column, view]) => {
  const stage = host.querySelector('.js-plotly-plot');
  const { left, top } = stage.getBoundingClientRect();
  const axis = (name) => stage._fullLayout[name.replace(/^[xy]/, '$&axis').replace('axisaxis', 'axis')];
  const on = (along, place) => along._offset + along.c2p(place);
  if (row === null || column === null) {
    const [across, queries, keys] = stage.layout.meta.head.arcs.axes.map(axis);
    const x = row === null ? across._offset + across._length : across._offset;
    return [left + x, top + (row === null ? on(keys, column + 1) : on(queries, row + 1))];
  }
  const shown = stage._fullData.find(({ meta }) => meta?.view === view);
  const [x, y] = [on(axis(shown.xaxis), column + 1), on(axis(shown.yaxis), row + 1)];
  return [left + x, top + y];
}"""
"""Of the large head: a cell [row, column, matrix], counted from 0; without a column or a row, that of the arcs."""


def point_at_cell(figure: Locator, row: int, column: int) -> None:
    """Move the pointer over a cell of a heatmap, counted from 0."""
    point_at(figure, HEATMAP, [row, column])


def cell_in(figure: Locator, row: int, column: int) -> tuple[float, float]:
    """Where a cell of a heatmap, counted from 0, stands in the window."""
    return spot(figure, HEATMAP, [row, column])


def click_head(page: Page, number: int) -> None:
    """Click the middle of a thumbnail of the head grid, counted from 0."""
    host = grid(page)
    x, y = host.evaluate(
        """(host, number) => {
          const { boxes, ratio } = host.__grid;
          const { x, y, width, height } = boxes[number];
          return [(x + width / 2) / ratio, (y + height / 2) / ratio];
        }""",
        number,
    )
    host.click(position={"x": x, "y": y})


def head_in_focus(page: Page) -> Locator:
    """The large head, once it is painted: its matrices, and its arcs."""
    return plot(page, "head-pattern")


def cell_of(head: Locator, row: int | None, column: int | None, view: str = "pattern") -> tuple[float, float]:
    """Where a cell of a matrix, counted from 0, stands in the window; without a column or a row, that of the arcs."""
    return spot(head, HEAD, [row, column, view])


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


def watch(page: Page, address: str, step: int, view: str = "") -> Heard:
    """Look at the panel of a training that is at this step, until it stands still."""
    heard = Heard(page)
    page.goto(f"{address}/?run=reverse{view}")
    wait_until_painted(page, plots=3)
    page.get_by_role("button", name="Watch").click()
    headline(page, step)
    page.wait_for_function(SETTLED)
    return heard


def two_frames(page: Page) -> None:
    """Wait until what the last input changed is painted, or would be."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def type_into(page: Page, label: str, text: str) -> None:
    """Fill a text or number field and press Enter."""
    field = page.get_by_label(label, exact=True)
    field.fill(text)
    field.press("Enter")


def unfold_settings(page: Page) -> None:
    """Have the settings of the training panel drawn."""
    page.get_by_test_id("stSidebar").get_by_text("Settings", exact=True).click()
    expect(page.get_by_label("Layers", exact=True)).to_be_visible()


def choose(page: Page, label: str, option: str) -> None:
    """Pick an option of a menu."""
    menu = page.get_by_role("combobox", name=label, exact=True)
    _pick(menu, page.get_by_role("option", name=option, exact=True))


def _pick(menu: Locator, wanted: Locator) -> None:
    """Click on what a menu holds; anew where the page was drawn meanwhile, and the menu closed under the pointer."""
    for patience in PATIENCES:
        if not wanted.is_visible():
            menu.click()
        try:
            wanted.click(timeout=patience)
        except PlaywrightTimeout:
            if patience == PATIENCES[-1]:
                raise
        else:
            return


SETTLED = """() =>
  document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning' &&
  [...document.querySelectorAll('[data-testid=stElementContainer]')].every(
    (each) => each.dataset.stale !== 'true' && getComputedStyle(each).opacity === '1') &&
  [...document.querySelectorAll('.stBidiComponent')].every((each) => 'drawn' in each.dataset)
"""
"""A change of theme and the end of a training are reruns, and what a rerun has not drawn anew yet is pale. A component
whose script has not come yet has neither its words nor its name."""
MEASURED = f"""() => ({SETTLED})() && ![...document.querySelectorAll('[data-testid=stIconMaterial]')].some(
  (each) => each.textContent.startsWith('hourglass'))"""
"""Nothing is to come any more: what takes long is measured after the first look at a page, and an hourglass says so."""
STYLED = "() => [...document.querySelectorAll('style')].some((each) => each.textContent.includes('stCaptionContainer'))"
"""Our style sheet is there: a new tab has the first words some tenths of a second before it."""
BY_KEY = """() => document.fonts.status === 'loaded' &&
  [...document.querySelectorAll('.katex, table, pre, [style*="overflow-x"]')].every((each) =>
  each.scrollWidth <= each.clientWidth || getComputedStyle(each).overflowX === 'visible' || each.tabIndex === 0
  || each.querySelector('[tabindex], a[href], button'))"""
"""What scrolls sideways is a stop of the Tab key, or has one in it (web/kit/scrollers.js)."""
COUNT_CHANGES = """() => {
  window.changes = 0;
  window.watch?.disconnect();
  window.watch = new MutationObserver((changes) => window.changes += changes.length);
  const app = document.querySelector('[data-testid=stApp]');
  window.watch.observe(app, { attributeFilter: ['data-test-script-state'], childList: true, subtree: true });
  return true;
}"""
"""Reruns, and parts that come late: Streamlit loads what colours code after the page stands, and puts it in then."""
NOT_OURS = "stFileUploaderDropzone"
"""Streamlit's own element, with both a role and a label: axe-core calls that presentation-role-conflict."""


def violations(page: Page) -> list[str]:
    """What axe-core finds once nothing is being drawn anew, an entry an element."""
    from axe_playwright_python.sync_playwright import Axe  # benchmarks drive pages without it

    page.wait_for_function(STYLED)
    for _ in range(ATTEMPTS):  # what is drawn anew meanwhile has no words and no name for a moment
        page.wait_for_function(f"() => ({SETTLED})() && ({BY_KEY})() && ({COUNT_CHANGES})()")
        found = Axe().run(page).response["violations"]
        if not found or not page.evaluate("() => window.changes"):
            break
    return [
        f"{violation['id']}: {node['html']} {node['failureSummary']}"
        for violation in found
        for node in violation["nodes"]
        if not (violation["id"] == "presentation-role-conflict" and NOT_OURS in node["html"])
    ]


def fits_a_phone(page: Page, *, axe: bool = True) -> None:
    """Assert that the page scrolls nowhere sideways on a phone, and that axe-core finds nothing there."""
    page.set_viewport_size(PHONE)
    page.wait_for_function(SETTLED)
    wide = "() => document.querySelector('[data-testid=stMain]').scrollWidth"
    wait_for("a page as wide as a phone", lambda: page.evaluate(wide), lambda found: found == PHONE["width"])
    if axe:
        assert [each for each in violations(page) if not each.startswith(STREAMLITS_MENU)] == []
