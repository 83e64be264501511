"""Two servers on one folder of runs: what one begins, stops or renames, the other sees."""

from __future__ import annotations

import re
import shutil
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.kit.driving import ROOT, dashboard, type_into
from tests.kit.runs import names, reached
from transformer.training.exchange.inspection import faults
from transformer.training.runs import list_runs

WIDE = {"width": 1440, "height": 900}


def without_errors(page: Page) -> None:
    expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_attached()
    expect(page.locator("[data-testid=stException]")).to_have_count(0)


def test_two_servers_share_a_folder(chromium: Browser, tmp_path: Path) -> None:
    """A run begun by one is seen and stopped by the other; one renames what the other looks at."""
    root = tmp_path / "runs"
    for name in ("good", "other"):
        shutil.copytree(ROOT / "checkpoints" / "reverse-aligned", root / name)
    logs = [tmp_path / "one.log", tmp_path / "two.log"]
    with ExitStack() as opened:
        one, two = (opened.enter_context(dashboard(root, log)) for log in logs)
        here, there = (opened.enter_context(chromium.new_context(viewport=WIDE)).new_page() for _ in range(2))

        here.goto(f"{one}/positions?run=good&layers=1&heads=1&width=8&positions=none&max_steps=100000")
        here.get_by_test_id("stSidebar").get_by_test_id("stBaseButton-primary").click()
        panel = here.locator(".st-key-training p").first
        expect(panel).to_contain_text("none-1")
        (run,) = (run for run in list_runs(root) if run.name not in ("good", "other"))
        there.goto(f"{two}/?run=good")
        expect(there.locator(".st-key-training-of-another")).to_contain_text(run.name)
        there.get_by_role("button", name="Watch", exact=True).click()
        expect(there.locator(".st-key-training p").first).to_contain_text(run.name)
        there.locator(".st-key-stop button").click()
        expect(panel).to_contain_text("stopped by hand")
        reached(run, "stopped")
        assert faults(run) == []

        here.goto(f"{one}/runs?run=good&compare=good")
        there.goto(f"{two}/heads?run=good")
        without_errors(there)
        type_into(here, "Rename it", "mine")
        expect(here.get_by_text("good is now called mine.")).to_be_visible()
        there.goto(f"{two}/heads?run=good")  # its own link may say another run's name by now
        expect(there.get_by_text("There is no run “good” here")).to_be_visible()
        expect(there.get_by_label("Model", exact=True)).to_have_value(re.compile("other|none-1"))
        without_errors(there)
        expect(there.get_by_text("There is no run “good” here")).to_be_visible()
    assert names(root) == sorted(["mine", "other", run.name])
    for log in logs:
        assert "Traceback" not in log.read_text(errors="replace")
