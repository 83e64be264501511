"""A lecture as one file, made without anybody clicking: a server for the purpose, and a browser without a window.

The browser presses what a reader would press (Share, The whole lecture), so the file is the same. The browser is driven
by Playwright: `pip install 'attention-lab[hand-out]'`.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dashboard.lectures.shelf import lectures
from dashboard.server.streamlit_private import HEALTH
from transformer.foundation.checks import reason
from transformer.foundation.foreign import shortened
from transformer.foundation.last_words import listen

HERE = "http://localhost:8501"
"""Where the dashboard is served, if nothing else is said."""
STARTS, WRITES = 60.0, 3600.0
"""Seconds that a server may take to start, and a browser to write all steps."""
READY = ".al-sharing[data-state=ready]"
"""The button, once it can be pressed (web/sharing/sharing.js)."""
ADDRESSED = re.compile(r"https?://\S{1,2000}")
"""How the address of a server is written."""
ADDRESS = "attention-lab-address"
"""Where the page looks for the root of its links (web/document/write.js)."""
NO_BROWSER = "A hand-out takes a browser: pip install playwright, then playwright install --only-shell chromium."


def write(name: str, out: Path, address: str = HERE, *, notes: bool = False) -> int:
    """Write the lecture of this name to a file; its size in bytes. The links in it lead to `address`.

    The presenter's `notes` are in it only if that is said.

    Raises ValueError where there is no such lecture or no browser, and OSError where the file cannot be written.
    """
    lecture = lectures().files.get(name)
    if lecture is None:
        raise ValueError(f"There is no lecture {name!r}; there are {', '.join(sorted(lectures().files))}.")
    if not ADDRESSED.fullmatch(address):
        raise ValueError(f"An address begins with http:// or https:// and has no blanks, unlike {shortened(address)}.")
    if not out.parent.is_dir():
        raise ValueError(f"There is no folder {out.parent}.")
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise ValueError(NO_BROWSER) from None
    with _server() as server, sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        except Error:
            raise ValueError(NO_BROWSER) from None
        try:
            page = browser.new_page(accept_downloads=True)
            page.add_init_script(f"sessionStorage.setItem({ADDRESS!r}, {address.rstrip('/')!r})")
            page.goto(f"{server}/?lecture={name}&sidebar=0")
            page.locator(READY).wait_for(timeout=STARTS * 1000)
            page.get_by_role("button", name="Share").click()
            if notes:
                page.get_by_role("checkbox", name="With the presenter's notes").check()
            with page.expect_download(timeout=WRITES * 1000) as download:
                page.get_by_role("button", name="The whole lecture").click()
            download.value.save_as(out)
        except Error as error:
            raise ValueError(f"The browser could not write it: {reason(error)}") from None
        finally:
            browser.close()
    return out.stat().st_size


def _chromium() -> str | None:
    """The Chromium of this system; None lets Playwright look for its own."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def _server() -> Iterator[str]:
    """The dashboard on a free port; yields its address. Raises ValueError when it does not come up."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    app = Path(__file__).parents[1] / "app.py"
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(app), "--server.headless", "true"]
    process = subprocess.Popen(
        [*command, "--server.port", str(port)],
        env=os.environ | {"NO_COLOR": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    words = listen(process)
    try:
        address = f"http://localhost:{port}"
        if not _answers(f"{address}{HEALTH}", process):
            raise ValueError(f"The dashboard did not start: {words.of(process.poll())}.")
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)


def _answers(address: str, process: subprocess.Popen[bytes]) -> bool:
    """Does the server answer before its time is up?"""
    end = time.monotonic() + STARTS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=2):
                return True
        except OSError:
            time.sleep(0.1)
    return False
