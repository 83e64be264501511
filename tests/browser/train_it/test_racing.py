"""Runs in a real browser: a race to its end, and a run renamed, carried away and brought in."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from tests.kit.driving import choose, plot, title, traces, type_into, wait_until_painted
from tests.kit.runs import digests
from transformer.training.runs import Run


def test_a_race_of_three_seeds_is_seen_to_its_end(page: Page, address: str, runs: Path):
    page.goto(f"{address}/runs?layers=1&heads=2&width=16&length=3&max_steps=150&pace=1")
    wait_until_painted(page, plots=1)
    page.get_by_role("button", name="seeds 0, 1 and 2").click()
    expect(title(page)).to_have_text(re.compile(r"^Not solved yet: \d of 3 runs still train\.$"))
    expect(page).to_have_url(re.compile("compare=reverse-3-1x2-learned-"))
    names = parse_qs(urlsplit(page.url).query)["compare"][0].split(",")
    expect(page.get_by_role("button", name="Stop all")).to_be_visible()
    for name in names:  # at a step a second the race was not over before the page was drawn
        Run(runs / name).ask(pace=None)
    expect(title(page)).to_have_text(re.compile(r"^(Solved with|All 3 solve it|None of the 3 solves it)"))
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    drawn = [trace for trace in traces(plot(page, "compare")) if not re.search(": (now|solved)$", trace["name"])]
    assert [trace["name"] for trace in drawn] == ["seed 0", "seed 1", "seed 2"]
    for seed, (name, trace) in enumerate(zip(names, drawn, strict=True)):
        run = Run(runs / name)
        metrics = run.metrics()
        assert run.config.training.seed == seed
        assert run.state.status == "finished"
        assert trace["points"] == sum("accuracy" in line for line in metrics)
        solved = f"solved at step {metrics[-1]['step']}" if metrics[-1].get("solved") else "not solved in 150 steps"
        expect(page.get_by_role("listitem").filter(has_text=f"({name})")).to_contain_text(solved)


def test_a_run_is_renamed_and_carried(page: Page, address: str, runs: Path, tmp_path: Path):
    shutil.copytree(runs / "reverse-aligned", runs / "mine")
    whole = digests(Run(runs / "mine"))
    page.goto(f"{address}/runs?run=mine&compare=mine,reverse")
    wait_until_painted(page, plots=1)
    expect(page.get_by_label("Run", exact=True)).to_have_value("mine")
    type_into(page, "Rename it", "yours & [mine]")
    expect(page.get_by_text("mine is now called yours & [mine].")).to_be_visible()
    expect(page).to_have_url(re.compile(r"run=yours"))
    assert digests(Run(runs / "yours & [mine]")) == whole

    choose(page, "Run", "yours & [mine]")
    # Until all is drawn anew, the field of the run before stands below.
    expect(page.get_by_label("Rename it", exact=True).first).to_have_value("yours & [mine]")
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(state="attached")
    with page.expect_download() as saving:
        page.get_by_test_id("stDownloadButton").get_by_role("button").click()
    file = tmp_path / saving.value.suggested_filename
    saving.value.save_as(file)
    assert file.name == "yours & [mine].attention-run.zip"
    page.get_by_text("Add a run from a file").click()
    page.locator("[data-testid=stFileUploader] input[type=file]").set_input_files(file)
    expect(page.get_by_text("yours & [mine]-2 was added.")).to_be_visible()
    assert digests(Run(runs / "yours & [mine]-2")) == whole
    for name in ("yours & [mine]", "yours & [mine]-2"):
        shutil.rmtree(runs / name)
