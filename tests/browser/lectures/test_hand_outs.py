"""Hand-outs: what is read in the file is what stood on the screen, number by number; no server is asked."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from dashboard.components.documents.pages import packed_plotly
from dashboard.components.payload import unpack
from tests.kit.driving import MEASURED, PATIENCE, ROOT, SETTLED
from tests.kit.takeaway import DIGEST, TOKENS, WEIGHTS
from transformer import checkpoints, observe

pytestmark = [pytest.mark.browser, pytest.mark.nightly]
MOST = 6_000_000
"""Bytes that a hand-out may have beside plotly.js."""
VIEWS = [
    "heads?run=reverse&query=9",
    "masks?run=reverse",
    "inside?run=reverse&operation=softmax",
    "film?run=reverse",
    "context",
    "corners",
    "machine?run=reverse",
    "reading?run=shakespeare",
]
SENTENCES = "[data-testid=stHeading], [data-testid=stCaptionContainer], .stMarkdown [data-testid=stMarkdownContainer]"
SAID = f"""() => [...document.querySelectorAll('[data-testid=stMain] :is({SENTENCES})')]
  .filter((each) => !each.querySelector('.katex, [translate=no]') && !each.closest('details:not([open])'))
  .map((each) => each.innerText.trim()).filter(Boolean)"""
FIGURES = (
    "() => [...document.querySelectorAll('.al-plot')].map((each) => JSON.stringify(each.__plot?.shown?.figure.data))"
)
IDLE = "() => document.querySelectorAll('[aria-busy=true]').length === 0"


def documents(file: Path) -> list[dict[str, Any]]:
    packed = re.search(r'id="documents">([^<]*)<', file.read_text())[1]  # type: ignore[index]
    found: list[dict[str, Any]] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return found


def figures(parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The components of a document, in order."""
    for part in parts:
        if "name" in part:
            yield part
        for column in part.get("columns", []):
            yield from figures(column["parts"])
        yield from figures(part.get("parts", []))


def hand_out(page: Page, out: Path) -> Path:
    page.wait_for_function(SETTLED)
    page.wait_for_function(IDLE)
    page.locator(".al-sharing[data-state=ready]").wait_for(state="attached")
    page.get_by_role("button", name="Share").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="This view").click()
    download.value.save_as(out)
    return out


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_read_is_what_stood_on_the_screen(page: Page, address: str, offline: Page, tmp_path: Path, view: str):
    page.goto(f"{address}/{view}")
    expect(page.get_by_role("heading", level=1).first).to_be_visible(timeout=PATIENCE)
    page.wait_for_function(MEASURED)
    file = hand_out(page, tmp_path / "view.html")
    said, drawn = page.evaluate(SAID), page.evaluate(FIGURES)
    (written,) = documents(file)
    offline.goto(file.as_uri())
    offline.locator("#hand-out[data-step]").wait_for(state="attached")
    offline.wait_for_function(IDLE)
    shown = offline.locator("#document").inner_text()
    squeezed = re.sub(r"\s+", " ", shown)
    assert [each for each in said if re.sub(r"\s+", " ", each) not in squeezed] == []
    assert said
    assert offline.evaluate(FIGURES) == drawn
    listed = page.evaluate("() => document.querySelector('.al-glossary').__glossary.found.map(({ name }) => name)")
    assert [name for name, _ in written["terms"]] == sorted(listed, key=str.casefold)
    assert offline.locator("#terms dt").all_text_contents() == [name for name, _ in written["terms"]]
    assert written["link"].startswith(f"{address}/")
    assert offline.locator("#link").get_attribute("href") == written["link"]


def test_ones_own_notes_are_kept_in_the_tab_and_stand_in_the_file(
    page: Page, address: str, offline: Page, tmp_path: Path
):
    page.goto(f"{address}/?run=reverse")
    page.locator(".al-sharing[data-state=ready]").wait_for(state="attached")
    page.get_by_role("button", name="Share").click()
    page.get_by_role("textbox", name="Your own notes").fill("Ask first.\n<b>Then</b> show.")
    page.reload()
    file = hand_out(page, tmp_path / "view.html")
    offline.goto(file.as_uri())
    expect(offline.locator("#notes-text")).to_have_text("Ask first.\n<b>Then</b> show.")


def test_a_pattern_in_the_file_is_the_models(page: Page, address: str, tmp_path: Path):
    page.goto(f"{address}/heads?run=reverse")
    expect(page.get_by_role("heading", level=1).first).to_be_visible(timeout=PATIENCE)
    (written,) = documents(hand_out(page, tmp_path / "view.html"))
    found = {each["key"]: each for each in figures(written["parts"])}
    _, body = unpack(base64.b64decode(found["head-pattern"]["message"]))
    heat = next(trace for trace in json.loads(body)["data"] if trace["type"] == "heatmap")
    shown = np.frombuffer(base64.b64decode(heat["z"]["bdata"]), dtype=heat["z"]["dtype"]).reshape(16, 16)
    model, _ = checkpoints.load(WEIGHTS)
    pattern = observe(model, torch.tensor([TOKENS]))["decoder.0.self_attention.pattern"][0, 2].numpy()
    assert np.allclose(np.nan_to_num(shown), pattern, atol=1e-6)
    assert [maker["weights"] for maker in written["makers"]] == [DIGEST]


def test_a_lecture_is_written_whole_by_the_command_line(offline: Page, tmp_path: Path):
    file = tmp_path / "masks.html"
    command = [sys.executable, "-m", "dashboard", "hand-out", "masks", "--out", str(file)]
    ended = subprocess.run(
        [*command, "--address", "https://lab.example.org/"], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert "masks.html" in ended.stdout
    assert file.stat().st_size - 4 * len(packed_plotly()) / 3 < MOST
    found = documents(file)
    assert [each["lecture"]["at"] for each in found] == list(range(1, len(found) + 1))
    assert all(each["link"].startswith("https://lab.example.org/") for each in found)
    assert all(each["makers"][0]["weights"] for each in found)
    asks = next(place for place, each in enumerate(found) if each["question"])
    offline.goto(f"{file.as_uri()}#{asks + 1}")
    title = offline.get_by_role("heading", name=found[asks]["title"])
    expect(title).to_be_hidden()
    offline.get_by_role("button", name="Show without predicting").click()
    expect(title).to_be_visible()
    offline.set_viewport_size({"width": 390, "height": 844})
    for step in range(1, len(found) + 1):
        offline.locator("#steps").select_option(str(step - 1))
        expect(offline.locator("#hand-out")).to_have_attribute("data-step", str(step))
        offline.wait_for_function(IDLE)
        assert offline.evaluate("() => document.documentElement.scrollWidth") == 390, f"step {step}"
    offline.keyboard.press("Escape")
    offline.locator("h1").first.click()
    offline.keyboard.press("ArrowLeft")
    expect(offline.locator("#hand-out")).to_have_attribute("data-step", str(len(found) - 1))
