"""Hand-outs: what is read in the file is what stood on the screen, number by number; no server is asked."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from dashboard.components.documents.pages import packed_plotly
from dashboard.components.payload import unpack
from dashboard.lectures.shelf import lectures
from tests.kit.driving import MEASURED, PHONE, ROOT, SETTLED
from tests.kit.takeaway import DIGEST, TOKENS, WEIGHTS
from transformer import checkpoints, observe

MOST = 600_000
"""Bytes a step that a hand-out may have beside plotly.js."""
VIEWS = ["inside?run=reverse&operation=softmax", "film?run=reverse", "context", "machine?run=reverse"]
"""Tables, a film, a figure with handles, and the machine."""
LECTURE = """---
title: Masks
minutes: 1
language: en
audience: everybody
---

## Half right
view: accuracy?run=reverse
ask: Which half can it predict?
choice: The first when first_half > 0.9
choice: The second when first_half < 0.2

Half of it.

> For me alone.

## Who sees whom
view: masks?run=reverse&mask=recent:4
look: three

A mask.

## What moves
view: information?run=reverse&poked=5
look: moves
until: moves

One token.
"""
SENTENCES = "[data-testid=stHeading], [data-testid=stCaptionContainer], .stMarkdown [data-testid=stMarkdownContainer]"
SAID = f"""() => [...document.querySelectorAll('[data-testid=stMain] :is({SENTENCES})')]
  .filter((each) => !each.querySelector('.katex, [translate=no]') && !each.closest('details:not([open])'))
  .map((each) => each.innerText.trim()).filter(Boolean)"""
FIGURES = """() => [...document.querySelectorAll('.al-plot:not(#paper *)')].map(
  (each) => JSON.stringify(each.__plot?.shown?.figure.data))"""
ROLLS = """sheet => {
  const below = (node) => [...node.children].flatMap((each) => [each, ...below(each.shadowRoot ?? each)]);
  const rolls = ({ overflowX, overflowY }) => [overflowX, overflowY].some((how) => ['auto', 'scroll'].includes(how));
  return below(sheet).filter((each) => each instanceof HTMLElement && rolls(getComputedStyle(each))).length;
}"""
"""How many elements of a sheet scroll."""
HEIGHT = """sheet => {
  const shown = [...sheet.children].filter((each) => each.className !== 'asked');
  const places = shown.map((each) => each.getBoundingClientRect());
  return Math.max(...places.map((each) => each.bottom)) - Math.min(...places.map((each) => each.top));
}"""
"""Pixels of a sheet, but for what it asks, which has a page of its own."""
PAPER = 273 / 25.4 * 96
"""Pixels of a page of A4 within its margins."""
LED_NOWHERE = ":scope > .part:last-child:has(> .heading, > .markdown strong)"
"""Words that lead to a figure, and stand behind it."""
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


def expect_read(page: Page, offline: Page, file: Path) -> dict[str, Any]:
    """What is read in the file is what stands on the page, and fits a phone. Returns its document."""
    said, drawn = page.evaluate(SAID), page.evaluate(FIGURES)
    (written,) = documents(file)
    offline.goto(file.as_uri())
    offline.locator("#hand-out[data-step]").wait_for(state="attached")
    offline.wait_for_function(IDLE)
    squeezed = re.sub(r"\s+", " ", offline.locator("#document").inner_text())
    assert [each for each in said if re.sub(r"\s+", " ", each) not in squeezed] == []
    assert said
    assert offline.evaluate(FIGURES) == drawn
    listed = page.evaluate("() => document.querySelector('.al-glossary').__glossary.found.map(({ name }) => name)")
    assert [name for name, _ in written["terms"]] == sorted(listed, key=str.casefold)
    assert offline.locator("#terms dt").all_text_contents() == [name for name, _ in written["terms"]]
    assert offline.locator("#link").get_attribute("href") == written["link"]
    offline.set_viewport_size(PHONE)
    offline.wait_for_function("(width) => document.documentElement.scrollWidth === width", arg=PHONE["width"])
    return written


def expect_printed(offline: Page, written: list[dict[str, Any]]) -> None:
    """All steps are on paper, each beginning a page; what is asked has a page of its own, before its answer."""
    offline.locator("#paper[data-whole]").wait_for(state="attached")
    offline.emulate_media(media="print")
    for seen in ("#document", "header", "#unprinted"):
        expect(offline.locator(seen)).to_be_hidden()
    sheets = offline.locator(".sheet:not(.terms)")
    expect(sheets).to_have_count(len(written))
    for sheet, document in zip(sheets.all(), written, strict=True):
        said = re.sub(r"\s+", " ", sheet.inner_text())
        words = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", document["lecture"]["words"])).strip()
        assert said.index(document["lecture"]["step"]) < said.index(words) < said.index(document["title"])
        expect(sheet).to_have_css("break-after", "page")
        if document["question"]:
            asked = sheet.locator(".asked")
            expect(asked).to_contain_text(document["asks"])
            expect(asked).to_have_css("break-after", "page")
            assert said.index(document["lecture"]["step"]) > said.index(asked.inner_text().splitlines()[0])
            assert sheet.evaluate("each => each.firstElementChild.className") == "asked"
        for picture in sheet.locator("canvas").all():
            if (picture.bounding_box() or {"width": 0})["width"]:
                assert picture.evaluate("each => each.toDataURL().length") > 200
        assert sheet.locator("button:visible").count() == 0
        assert sheet.evaluate(ROLLS) == 0
        height = sheet.evaluate(HEIGHT)
        assert height <= PAPER or height > PAPER / 0.75, "a few lines of it stand on a page of their own"
        if document["lecture"]["look"]:  # what leads to a figure has gone with it
            assert sheet.locator(LED_NOWHERE).count() == 0
    pages = len(re.findall(rb"/Type\s*/Page\b", offline.pdf(prefer_css_page_size=True)))
    assert pages >= len(written) + sum(bool(each["question"]) for each in written)
    offline.emulate_media(media="screen")


def test_the_presenters_notes_are_in_a_file_only_where_they_are_asked_for(
    page: Page, address: str, tmp_path: Path
) -> None:
    noted = next(number for number, step in enumerate(lectures().files["attention"].steps, 1) if step.notes)
    step = lectures().files["attention"].steps[noted - 1]
    view = replace(step.view, lecture="attention", lecture_step=noted).to_query()
    page.goto(f"{address}/{'' if step.page == 'overview' else step.page}?{urlencode(view)}")
    (written,) = documents(hand_out(page, tmp_path / "plain.html"))
    assert written["lecture"]["notes"] == ""
    page.get_by_role("checkbox", name="With the presenter's notes").check()
    with page.expect_download() as download:
        page.get_by_role("button", name="This view").click()
    download.value.save_as(tmp_path / "noted.html")
    (written,) = documents(tmp_path / "noted.html")
    assert written["lecture"]["notes"]


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_read_is_what_stood_on_the_screen(page: Page, address: str, offline: Page, tmp_path: Path, view: str):
    page.goto(f"{address}/{view}")
    expect(page.get_by_role("heading", level=1).first).to_be_visible()
    page.wait_for_function(MEASURED)
    written = expect_read(page, offline, hand_out(page, tmp_path / "view.html"))
    assert written["link"].startswith(f"{address}/")


def test_a_pattern_in_the_file_is_the_models_and_ones_own_notes_are_kept_in_the_tab_and_stand_there(
    page: Page, address: str, offline: Page, tmp_path: Path
):
    page.goto(f"{address}/heads?run=reverse&query=9")
    page.locator(".al-sharing[data-state=ready]").wait_for(state="attached")
    page.get_by_role("button", name="Share").click()
    page.get_by_role("textbox", name="Your own notes").fill("Ask first.\n<b>Then</b> show.")
    page.reload()
    page.wait_for_function(MEASURED)
    written = expect_read(page, offline, hand_out(page, tmp_path / "view.html"))
    expect(offline.locator("#notes-text")).to_have_text("Ask first.\n<b>Then</b> show.")
    found = {each["key"]: each for each in figures(written["parts"])}
    _, body = unpack(base64.b64decode(found["head-pattern"]["message"]))
    heat = next(trace for trace in json.loads(body)["data"] if trace["type"] == "heatmap")
    shown = np.frombuffer(base64.b64decode(heat["z"]["bdata"]), dtype=heat["z"]["dtype"]).reshape(16, 16)
    model, _ = checkpoints.load(WEIGHTS)
    pattern = observe(model, torch.tensor([TOKENS]))["decoder.0.self_attention.pattern"][0, 2].numpy()
    assert np.allclose(np.nan_to_num(shown), pattern, atol=1e-6)
    assert [maker["weights"] for maker in written["makers"]] == [DIGEST]


def test_a_lecture_is_written_whole_by_the_command_line(offline: Page, tmp_path: Path):
    file = tmp_path / "mine.html"
    (tmp_path / "mine.md").write_text(LECTURE)
    command = [sys.executable, "-m", "dashboard", "hand-out", "mine", "--out", str(file)]
    ended = subprocess.run(
        [*command, "--address", "https://lab.example.org/"],
        cwd=ROOT,
        env=os.environ | {"ATTENTION_LAB_LECTURES": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert "mine.html" in ended.stdout
    found = documents(file)
    assert file.stat().st_size - 4 * len(packed_plotly()) / 3 < MOST * len(found)
    assert [(each["lecture"]["at"], bool(each["question"])) for each in found] == [(1, True), (2, False), (3, False)]
    assert "A small model, retrained for" in json.dumps(found[1]["parts"])  # it was waited for
    assert all(each["link"].startswith("https://lab.example.org/") for each in found)
    assert all(each["makers"][0]["weights"] == DIGEST for each in found)
    assert [each["lecture"]["notes"] for each in found] == ["", "", ""]
    offline.set_viewport_size(PHONE)
    offline.goto(file.as_uri())
    title = offline.get_by_role("heading", name=found[0]["title"])
    expect(title).to_be_hidden()
    menu = offline.locator("#steps option")
    expect(menu).to_have_text(["1. Which half can it predict?", "2. Who sees whom", "3. What moves"])
    expect(offline.locator("#terms")).to_be_hidden()
    expect_printed(offline, found)
    offline.get_by_role("button", name="Show without predicting").click()
    expect(title).to_be_visible()
    expect(menu).to_have_text(["1. Half right", "2. Who sees whom", "3. What moves"])
    for step in (3, 2, 1):
        offline.locator("#steps").select_option(str(step - 1))
        expect(offline.locator("#hand-out")).to_have_attribute("data-step", str(step))
        offline.wait_for_function(IDLE)
        assert offline.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"], f"step {step}"
    offline.keyboard.press("Escape")
    offline.locator("h1").first.click()
    for key, step in (("ArrowRight", "2"), ("ArrowLeft", "1")):
        offline.keyboard.press(key)
        expect(offline.locator("#hand-out")).to_have_attribute("data-step", step)
