"""Runs in a real browser: a race to its end, and a run that is carried away and brought in."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from playwright.sync_api import Page, expect

from tests.kit.driving import SETTLED, plot, title, traces, wait_until_painted
from tests.kit.runs import digests
from transformer.training.runs import Run


def test_a_race_of_three_seeds_is_seen_to_its_end(page: Page, address: str, runs: Path):
    page.goto(f"{address}/runs?layers=1&heads=2&width=16&length=3&max_steps=40&pace=1")
    wait_until_painted(page, plots=1)
    page.get_by_role("button", name="seeds 0, 1 and 2").click()
    expect(title(page)).to_have_text(re.compile(r"^Not solved yet: \d of 3 runs (still trains?|ha(s|ve) not ended)\.$"))
    expect(page).to_have_url(re.compile("compare=reverse-3-1x2-learned-"))
    names = parse_qs(urlsplit(page.url).query)["compare"][0].split(",")
    expect(page.get_by_role("button", name="Stop all")).to_be_visible()
    for name in names:  # at a step a second the race was not over before the page was drawn
        Run(runs / name).ask(pace=None)
    expect(title(page)).to_have_text(
        re.compile(r"^((Solved|First solved) with|All 3 solve it|None of the 3 solves it)")
    )
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    drawn = [trace for trace in traces(plot(page, "compare")) if not re.search(": (now|solved)$", trace["name"])]
    assert [trace["name"] for trace in drawn] == ["seed 0", "seed 1", "seed 2"]
    for name, trace in zip(names, drawn, strict=True):
        assert Run(runs / name).state.status == "finished"
        assert trace["points"] == sum("accuracy" in line for line in Run(runs / name).metrics())


def test_a_run_is_carried_away_and_brought_in(page: Page, address: str, runs: Path, tmp_path: Path):
    name = "yours & [mine]"
    shutil.copytree(runs / "reverse-aligned", runs / name)
    page.goto(f"{address}/runs?run={quote(name)}&compare={quote(name)},reverse")
    wait_until_painted(page, plots=1)
    expect(page.get_by_label("Run", exact=True)).to_have_value(name)
    page.wait_for_function(SETTLED)
    with page.expect_download() as saving:
        page.get_by_test_id("stDownloadButton").get_by_role("button").click()
    file = tmp_path / saving.value.suggested_filename
    saving.value.save_as(file)
    assert file.name == f"{name}.attention-run.zip"
    page.get_by_text("Add a run from a file").click()
    page.locator("[data-testid=stFileUploader] input[type=file]").set_input_files(file)
    expect(page.get_by_text(f"{name}-2 was added.")).to_be_visible()
    assert digests(Run(runs / f"{name}-2")) == digests(Run(runs / name))
    for each in (name, f"{name}-2"):
        shutil.rmtree(runs / each)
