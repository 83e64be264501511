"""The dashboard on a copy of the shipped runs, a Chromium, and pages on which nothing may go wrong unseen."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from driving import PATIENCE, ROOT, browser, dashboard
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Request

SHIPPED = ("reverse", "reverse-sinusoidal", "reverse-aligned", "reverse-aligned-causal", "reverse-translate")
PROBES = re.compile(r"^/(heads|masks|positions|accuracy)/_stcore/(health|host-config)$")
"""On a deep link Streamlit looks for its server below the page's own path first, and is told 404."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser a worker. Where there is none its tests are skipped, unless REQUIRE_BROWSER=1 says it must be there."""
    try:
        started = browser()
        chromium = started.__enter__()
    except Error as error:
        reason = f"no Chromium can be started (apt install chromium): {error.message.splitlines()[0]}"
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    yield chromium
    started.__exit__(None, None, None)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs of its own: what is trained here never reaches the repository."""
    folder = tmp_path_factory.mktemp("runs")
    for name in SHIPPED:
        shutil.copytree(ROOT / "checkpoints" / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def address(chromium: Browser, runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard, started once a worker; whatever a page shows, its log must hold no traceback."""
    log = tmp_path_factory.mktemp("server") / "log"
    with dashboard(runs, log) as address:
        yield address
        for run in runs.iterdir():
            (run / "stop").touch()  # a training outlives its server, and is not to outlive the tests
    said = log.read_text(errors="replace")
    assert "Traceback" not in said, said


@pytest.fixture
def new_page(chromium: Browser, address: str) -> Iterator[Callable[..., Page]]:
    """Makes pages, each in a browser profile of its own. None may log an error, or ask anything of another server."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def logged(message: ConsoleMessage) -> None:
        url = message.location.get("url", "")
        probe = message.text.startswith("Failed to load resource") and PROBES.match(urlsplit(url).path)
        if message.type == "error" and not probe:
            complaints.append(f"{message.text} ({url})")

    def asked(request: Request) -> None:
        if urlsplit(request.url).scheme in ("http", "https") and not request.url.startswith(f"{address}/"):
            complaints.append(f"asked another server: {request.url}")

    def make(width: int = 1440, height: int = 900, **options: Any) -> Page:
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        context.on("console", logged)
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        context.on("request", asked)
        return context.new_page()

    yield make
    for context in contexts:
        context.close()
    assert not complaints, "\n".join(complaints)


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    return new_page()
