"""The dashboard on a copy of the shipped runs, a Chromium, and pages on which nothing may go wrong unseen."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.kit import texts
from tests.kit.driving import PATIENCE, ROOT, browser_of_a_test, dashboard, listen
from tests.kit.waiting import wait_for
from transformer.training.listing import list_runs

SHIPPED = ("reverse", "reverse-sinusoidal", "reverse-aligned", "reverse-aligned-causal", "reverse-translate")
TRIO = ("bottleneck-gru", "bottleneck-gru-attention", "bottleneck-transformer")
SCREEN = {"width": 1440, "height": 900}
CLOSED = re.compile(
    r"Exception in ASGI application\n(?:(?!Exception in ASGI).)*?WebSocketDisconnected: Cannot call .send.[^\n]*\n",
    re.DOTALL,
)
"""What Streamlit's server says of a tab that is closed in the midst of its greeting."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser a worker."""
    with browser_of_a_test() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs of its own: what is trained here never reaches the repository."""
    folder = tmp_path_factory.mktemp("runs")
    for name in (*SHIPPED, *TRIO, "shakespeare", "encodings"):
        shutil.copytree(ROOT / "checkpoints" / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def address(chromium: Browser, runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard, started once a worker; whatever a page shows, its log must hold no traceback."""
    log = tmp_path_factory.mktemp("server") / "log"
    with dashboard(runs, log) as address:
        yield address
    said = CLOSED.sub("", log.read_text(errors="replace"))
    assert "Traceback" not in said, said[said.index("Traceback") :]


@pytest.fixture
def stillness(runs: Path) -> Iterator[None]:
    """Ends what is still training after a test: every page shows it, and it would outlive even the server."""
    yield
    live = [run for run in list_runs(runs) if run.state.live]
    for run in live:
        run.request_stop()
    wait_for("every training has ended", lambda: [run for run in live if run.state.live], lambda going: not going)


@pytest.fixture(scope="session")
def profile(chromium: Browser, address: str) -> Iterator[BrowserContext]:
    """The browser profile of most tests: its cache saves every page but the first a second."""
    with chromium.new_context(viewport=SCREEN) as context:
        yield context


@pytest.fixture
def new_page(
    chromium: Browser, profile: BrowserContext, address: str, stillness: None
) -> Iterator[Callable[..., Page]]:
    """Makes pages, in a browser profile of their own where options are given. None may complain (`listen`)."""
    opened: list[Page | BrowserContext] = []
    complaints: list[str] = []

    def make(**options: Any) -> Page:
        context = chromium.new_context(**{"viewport": SCREEN, **options}) if options else profile
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        listen(page, address, complaints)
        opened.append(context if options else page)
        return page

    yield make
    for each in opened:
        each.close()
    assert not complaints, "\n".join(complaints)


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    return new_page()


@pytest.fixture(scope="module")
def common(profile: BrowserContext, address: str) -> Iterator[Page]:
    """A page that the tests of a file have in common, each of which finds it as the one before has left it."""
    complaints: list[str] = []
    page = profile.new_page()
    page.set_default_timeout(PATIENCE)
    listen(page, address, complaints)
    yield page
    page.close()
    assert not complaints, "\n".join(complaints)


@pytest.fixture
def offline(chromium: Browser) -> Iterator[Page]:
    """A page that may ask nobody for anything, and complains of nothing."""
    complaints: list[str] = []
    with chromium.new_context(viewport=SCREEN) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("request", lambda asked: complaints.append(asked.url) if asked.url.startswith("http") else None)
        yield page
    assert not complaints, "\n".join(complaints)


@pytest.fixture
def plays(runs: Path) -> Iterator[str]:
    """A run of a text among the others, for as long as it is needed."""
    run = texts.untrained(runs / "plays", texts.config())
    yield run.name
    shutil.rmtree(run.folder)
