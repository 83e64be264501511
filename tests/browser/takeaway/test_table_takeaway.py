"""A table and a strip, saved: the files hold what is on the screen, and the numbers behind it are the model's own."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.kit.driving import wait_until_painted
from tests.kit.takeaway import DC, DIGEST, FORMATS, NAMES, TOKENS, WEIGHTS, pixels, save
from transformer import checkpoints, observe

SVG = "{http://www.w3.org/2000/svg}"
PLACE = 8
"""The query that is looked at, counted from 0: SEP, the first of the answer."""
VIEW = "/inside?run=reverse&head=decoder.0.self_attention.2&operation=divide"
TABLE, STRIP = "inside-numbers", "inside-steps"
LABELS = [*NAMES, "Σ"]


@pytest.fixture(scope="module")
def shown(
    chromium: Browser, address: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[str], tuple[float, float], dict[tuple[str, str], Path]]:
    """The table's texts and its size on the screen; and it and the strip of steps in all formats."""
    folder = tmp_path_factory.mktemp("tables")
    with chromium.new_context(viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.goto(f"{address}{VIEW}")
        wait_until_painted(page, 3)
        table = page.locator(f".st-key-{TABLE} table")
        box = table.bounding_box()
        texts = [text for text in table.locator("th, td").all_inner_texts() if text]
        files = {(key, kind): save(page, key, kind, folder) for key in (TABLE, STRIP) for kind in FORMATS}
        return texts, (box["width"], box["height"]), files


def test_the_numbers_of_a_table_are_the_models_own(shown):
    texts, _, files = shown
    model, _ = checkpoints.load(WEIGHTS)
    seen = observe(model, torch.tensor([TOKENS]))
    scores, pattern = (seen[f"decoder.0.self_attention.{name}"][0, 2, PLACE].numpy() for name in ("scores", "pattern"))
    with np.load(files[TABLE, "npz"], allow_pickle=False) as saved:
        arrays = {name: saved[name] for name in saved.files}
    np.testing.assert_allclose(arrays["scaled"][:16], scores, atol=2e-6)
    np.testing.assert_allclose(arrays["pattern"][:16], pattern, atol=2e-6)
    np.testing.assert_array_equal(arrays["pattern.mask"], np.arange(17) <= PLACE + 8 * (np.arange(17) == 16))
    np.testing.assert_array_equal(arrays["key"], [*range(1, 17), np.nan])
    assert arrays["key_token"].tolist() == LABELS
    assert arrays["may_see"].tolist() == ["yes"] * 9 + ["no"] * 7 + [""]

    table = pd.read_csv(files[TABLE, "csv"], comment="#", dtype={"key_token": str, "value": str})
    for name in ("dots", "scaled", "exponentials", "pattern"):
        rows = table[table.series == name]
        assert rows.key_token.tolist() == LABELS
        np.testing.assert_array_equal(
            np.array([float(text) for text in rows["value"]], arrays[name].dtype), arrays[name]
        )
        digits = [f"{value:.4f}".replace("-", "−") for value in arrays[name] if not np.isnan(value)]
        assert Counter(digits) <= Counter(texts), "every number on the screen is a saved one, rounded"
    with np.load(files[STRIP, "npz"], allow_pickle=False) as saved:
        np.testing.assert_array_equal(saved["pattern"], arrays["pattern"][:16].astype(np.float32))
        assert saved["keys"].shape == saved["values"].shape == (16, 16)
        assert saved["total"] == arrays["exponentials"][16]


def test_the_picture_of_a_table_is_made_of_its_texts_and_boxes(shown):
    texts, (width, height), files = shown
    svg = ElementTree.parse(files[TABLE, "svg"]).getroot()
    assert not {f"{SVG}{name}" for name in ("foreignObject", "image", "script")} & {each.tag for each in svg.iter()}
    letters = "".join("".join(each.itertext()) for each in svg.iter(f"{SVG}text"))
    assert Counter(letters.replace(" ", "")) == Counter("".join(texts).replace(" ", ""))
    assert DIGEST in next(each.text for each in svg.iter(f"{DC}identifier"))
    assert len(list(svg.iter(f"{SVG}path"))) == 3 * 7 + 1, "what is forbidden is hatched, and the chosen key is framed"
    colours = {each.get("fill") for each in svg.iter(f"{SVG}rect")}
    assert len(colours) > 15
    for key, size in ((TABLE, (width + 16, height + 16)), (STRIP, None)):
        png = files[key, "png"].read_bytes()
        Image.open(io.BytesIO(png)).verify()
        if size:
            assert pixels(png).shape[1::-1] == pytest.approx((2 * size[0], 2 * size[1]), abs=6)
        assert (pixels(png).std(axis=(0, 1)) > 10).all(), "it is not blank"


def test_the_page_and_the_vectors_of_a_table_open_from_the_disk(shown, chromium: Browser):
    texts, _, files = shown
    with chromium.new_context(offline=True, device_scale_factor=2, viewport={"width": 1200, "height": 900}) as context:
        alone = context.new_page()
        complaints: list[str] = []
        alone.on("console", lambda message: complaints.append(message.text))
        alone.goto(files[TABLE, "html"].as_uri())
        expect(alone.locator(".weights")).to_contain_text(DIGEST)
        assert [text for text in alone.locator("table").locator("th, td").all_inner_texts() if text] == texts
        assert alone.locator("table").get_attribute("aria-label") == alone.title()
        assert Axe().run(alone).response["violations"] == []
        alone.goto(files[STRIP, "html"].as_uri())
        expect(alone.get_by_role("img", name="Step 8 of 12: ÷ Σ")).to_be_visible()
        for key in (TABLE, STRIP):  # vectors and pixels are one picture, but for the letters' font
            alone.goto(files[key, "svg"].as_uri())
            seen, painted = pixels(alone.screenshot()), pixels(files[key, "png"].read_bytes())
            high, wide = (min(a, b) for a, b in zip(seen.shape[:2], painted.shape[:2], strict=True))
            assert (np.abs(seen[:high, :wide] - painted[:high, :wide]).max(axis=2) > 24).mean() < 0.06
        assert complaints == []


def test_a_strip_of_tokens_and_a_table_too_wide_for_the_window_are_saved_whole(
    page: Page, address: str, tmp_path: Path
):
    page.set_viewport_size({"width": 600, "height": 800})
    page.goto(f"{address}/?run=reverse&step=13")
    wait_until_painted(page, 3)
    expect(page.get_by_role("button", name="Save overview-tokens")).to_have_css("opacity", "0")
    # Not Streamlit's own menu of pages, which a phone finds in the sidebar: its lists hold lists that are no items.
    assert Axe().run(page, context="[data-testid=stMain]").response["violations"] == []
    svg = ElementTree.parse(save(page, "overview-tokens", "svg", tmp_path)).getroot()
    letters = Counter("".join(each.itertext()) for each in svg.iter(f"{SVG}text"))
    assert letters["in"] == letters["out"] == 1
    assert letters["✓"] + letters["✕"] == 8
    page.goto(f"{address}{VIEW}")
    wait_until_painted(page, 3)
    table = page.locator(f".st-key-{TABLE} table")
    assert table.evaluate("table => table.offsetWidth > table.parentElement.clientWidth")
    svg = ElementTree.parse(save(page, TABLE, "svg", tmp_path)).getroot()
    assert float(svg.get("width")) >= 640
    assert "÷ Σ" in ["".join(each.itertext()) for each in svg.iter(f"{SVG}text")]
