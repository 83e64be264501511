"""What a figure gives away: each file opened with the tools it is meant for, its numbers against the model's own."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.kit.driving import PAGES, SCRIPTS, grid, plot, wait_until_painted
from tests.kit.takeaway import DC, DIGEST, FORMATS, NAMES, RUN, STEP, TOKENS, WEIGHTS, pixels, save
from transformer import checkpoints, observe

HEAD = f"run={RUN}&head=decoder.0.self_attention.2"
HEADS, MASKS = f"/heads?{HEAD}", f"/masks?{HEAD}&mask=causal"
FIGURES = {"after-pattern": MASKS, "heads": HEADS, "head-pattern": HEADS}
"""A matrix, a canvas and a figure of several panels, and where they stand."""
MASK = np.tri(16, dtype=bool)


@pytest.fixture(scope="module")
def patterns() -> dict[str, np.ndarray]:
    """Every head's pattern on the page's own input, by the name that the page gives the head."""
    model, _ = checkpoints.load(WEIGHTS)
    seen = observe(model, torch.tensor([TOKENS]))
    layers = [seen[f"decoder.{layer}.self_attention.pattern"][0].numpy() for layer in range(2)]
    return {f"{layer}.{head}": pattern for layer, heads in enumerate(layers) for head, pattern in enumerate(heads)}


@pytest.fixture(scope="module")
def files(chromium: Browser, address: str, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """A matrix, the grid of heads and the head in focus, in all formats."""
    folder = tmp_path_factory.mktemp("taken")
    with chromium.new_context(viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        found = {}
        for view, plots in ((MASKS, PAGES["Mask effects"]), (HEADS, PAGES["Attention heads"])):
            page.goto(f"{address}{view}")
            wait_until_painted(page, plots)
            keys = [key for key, stands in FIGURES.items() if stands == view]
            found |= {(key, kind): save(page, key, kind, folder) for key in keys for kind in FORMATS}
        return found


@pytest.fixture
def links(address: str) -> dict[str, str]:
    """Of the views they were saved in: the step, which was the last, is named."""
    return {key: f"{address}{view}&step={STEP}" for key, view in FIGURES.items()}


def of_these_weights(origin: dict[str, Any]) -> bool:
    return bool(origin["makers"] == [{"run": RUN, "step": STEP, "weights": DIGEST}])


def chunks(png: bytes) -> list[tuple[bytes, bytes]]:
    """The chunks of a PNG file, each with the right check sum (ISO/IEC 15948, section 5)."""
    found, at = [], 8
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        body = png[at + 4 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length) == (zlib.crc32(body),)
        found.append((body[:4], body[4:]))
        at += 12 + length
    return found


def test_the_files_are_called_what_they_are(files: dict[tuple[str, str], Path]):
    for (key, kind), file in files.items():
        assert file.name == f"{key}-{RUN}-step{STEP}.{kind}"


def test_the_numbers_are_the_models_own(
    files: dict[tuple[str, str], Path], patterns: dict[str, np.ndarray], links: dict[str, str]
):
    with np.load(files["heads", "npz"], allow_pickle=False) as saved:
        for name, pattern in patterns.items():
            assert saved[f"head_{name}"].dtype == np.float32
            np.testing.assert_allclose(saved[f"head_{name}"], pattern, atol=2e-6)
            np.testing.assert_array_equal(saved[f"head_{name}.mask"], MASK)
        assert saved["query_token"].tolist() == saved["key_token"].tolist() == NAMES
        origin = json.loads(saved["origin"].item())
        assert of_these_weights(origin)
        assert origin["link"] == links["heads"]
    with np.load(files["head-pattern", "npz"], allow_pickle=False) as saved:
        np.testing.assert_allclose(saved["pattern"], np.where(MASK, patterns["0.2"], np.nan), atol=2e-6)
        np.testing.assert_array_equal(saved["pattern.mask"], MASK)
        np.testing.assert_array_equal(np.isnan(saved["contribution"]), ~MASK)
        assert saved["query_token"].tolist() == saved["key_token"].tolist() == NAMES
        assert saved["query"].tolist() == saved["key"].tolist() == list(range(1, 17))
    with (
        np.load(files["after-pattern", "npz"], allow_pickle=False) as saved,
        np.load(files["heads", "npz"]) as all_heads,
    ):
        assert np.isnan(saved["values"][~MASK]).all()
        np.testing.assert_allclose(saved["values"][MASK], all_heads["head_0.2"][MASK], atol=2e-6)
        np.testing.assert_array_equal(saved["mask"], MASK)
        assert set(saved.files) == {"values", "mask", "query", "query_token", "key", "key_token", "origin"}

    for key, series in (("heads", "head 0.2"), ("after-pattern", "values"), ("head-pattern", "pattern")):
        text = files[key, "csv"].read_text()
        assert f"# link: {links[key]}\n# weights: sha256:{DIGEST} ({RUN}, step {STEP})\n" in text
        table = pd.read_csv(io.StringIO(text), comment="#", dtype={"query_token": str, "key_token": str})
        table = table[table.series == series]
        assert table.key_token.tolist() == NAMES * 16
        assert table["query"].tolist() == np.repeat(np.arange(1, 17), 16).tolist()
        values = np.where(MASK, table["value"].to_numpy().reshape(16, 16), 0).astype(np.float32)
        np.testing.assert_allclose(values, np.where(MASK, patterns["0.2"], 0), atol=2e-6)
        assert (table["mask"].to_numpy().reshape(16, 16) == MASK).all()


def test_the_pictures_say_where_they_come_from(files: dict[tuple[str, str], Path], page: Page, links: dict[str, str]):
    for key, link in links.items():
        svg = ElementTree.parse(files[key, "svg"]).getroot()
        said = {each.tag: each.text for each in svg.iter() if each.tag.startswith(DC)}
        assert said[f"{DC}source"] == link
        assert DIGEST in said[f"{DC}identifier"]
        letters = ["".join(each.itertext()).strip() for each in svg.iter("{http://www.w3.org/2000/svg}text")]
        assert letters.count("SEP") >= 2
        png = files[key, "png"].read_bytes()
        texts = dict(body.split(b"\0\0\0\0\0") for name, body in chunks(png) if name == b"iTXt")
        assert texts[b"Source"].decode() == link
        assert of_these_weights(json.loads(texts[b"origin"]))
        Image.open(io.BytesIO(png)).verify()
    page.goto(links["heads"])  # which opens the same view
    wait_until_painted(page, 3)
    assert grid(page).evaluate("host => [host.dataset.focus, host.__grid.panels.length]") == ["2", 8]
    page.goto(links["after-pattern"])
    wait_until_painted(page, PAGES["Mask effects"])
    box = plot(page, "after-pattern").bounding_box()
    assert pixels(files["after-pattern", "png"].read_bytes()).shape[1::-1] == pytest.approx(
        (2 * box["width"], 2 * box["height"]), abs=2
    )


def test_pages_and_vectors_open_from_the_disk_without_a_network(
    files: dict[tuple[str, str], Path], patterns: dict[str, np.ndarray], chromium: Browser, links: dict[str, str]
):
    with chromium.new_context(offline=True, device_scale_factor=2, viewport={"width": 1200, "height": 900}) as context:
        alone = context.new_page()
        complaints: list[str] = []
        alone.on("console", lambda message: complaints.append(message.text))
        alone.on("pageerror", lambda error: complaints.append(str(error)))
        alone.goto(files["head-pattern", "html"].as_uri())
        expect(alone.locator("#figure .heatmaplayer image")).to_have_count(4)  # of each matrix what is seen, and not
        arcs = alone.locator("#figure .shapelayer path").evaluate_all(
            "all => all.map((each) => each.getAttribute('d'))"
        )
        assert sum(each.count("C") for each in arcs) >= 16, "an arc a query at least"
        alone.goto(files["after-pattern", "html"].as_uri())
        expect(alone.locator("#figure .heatmaplayer image").first).to_be_attached()
        expect(alone.locator("a.origin")).to_have_attribute("href", links["after-pattern"])
        expect(alone.locator(".weights")).to_contain_text(DIGEST)
        alone.goto(files["heads", "html"].as_uri())
        expect(alone.locator(".picture svg image")).to_have_count(8)
        packed = alone.locator("a.numbers").first.get_attribute("href")
        with np.load(io.BytesIO(base64.b64decode(packed.split(",")[1]))) as inside:
            np.testing.assert_allclose(inside["head_1.3"], patterns["1.3"], atol=2e-6)
        assert Axe().run(alone).response["violations"] == []
        alone.goto(files["heads", "svg"].as_uri())
        seen = pixels(alone.screenshot())
        assert complaints == []
    # The vectors are the picture: letters may be set in another font, cells stand where they stand.
    painted = pixels(files["heads", "png"].read_bytes())
    height, width = (min(a, b) for a, b in zip(seen.shape[:2], painted.shape[:2], strict=True))
    assert (np.abs(seen[:height, :width] - painted[:height, :width]).max(axis=2) > 24).mean() < 0.02


def test_the_menu_is_there_for_the_keyboard(page: Page, address: str):
    page.goto(f"{address}{HEADS}")
    wait_until_painted(page, 3)
    for key in ("head-pattern", "heads"):
        place = page.locator(f".st-key-{key}")
        button, menu = place.get_by_role("button", name=f"Save {key}"), place.get_by_role("menu")
        items = place.get_by_role("menuitem")
        assert items.count() == 0, "the menu is made when it is asked for"
        button.focus()
        expect(button).to_have_css("opacity", "1")
        page.keyboard.press("Enter")
        expect(menu).to_be_visible()
        expect(button).to_have_attribute("aria-expanded", "true")
        expect(items.first).to_be_focused()
        page.keyboard.press("ArrowUp")
        expect(items.last).to_be_focused()
        assert Axe().run(page).response["violations"] == []
        page.keyboard.press("Escape")
        expect(menu).to_be_hidden()
        expect(button).to_be_focused()
        expect(button).to_have_attribute("aria-expanded", "false")


def test_tokens_of_any_kind_and_numbers_to_the_last_bit(page: Page, address: str):
    page.goto(f"{address}{HEADS}")
    wait_until_painted(page, 3)
    tokens = [",", '"', "a\nb", "#", "😀é", ""]
    values = np.array([0.1, np.nan, np.inf, -np.inf, 1e-45, -0.0], dtype=np.float32)
    text, packed = page.evaluate(
        """async ([scripts, tokens, bits]) => {
          const get = (file) => import(`${scripts}/takeaway/${file}`);
          const [{ csv }, { npz, decoded }, { table, arrays, places }] = await Promise.all(
            ['csv.js', 'npz.js', 'series.js'].map(get));
          const data = decoded(bits, '<f4');
          const dims = [{ name: 'token', at: places(6, 1), tokens }];
          const series = [{ name: 'x', dims, values: { name: 'value', dtype: '<f4', data }, extra: [] }];
          const packed = await npz(arrays(series)).arrayBuffer();
          return [csv(table(series), { link: 'a\\nb' }), Array.from(new Uint8Array(packed))];
        }""",
        [SCRIPTS, tokens, base64.b64encode(values.tobytes()).decode()],
    )
    table = pd.read_csv(io.StringIO(text), comment="#", keep_default_na=False, na_values={"value": [""]})
    assert table["token_token"].tolist() == tokens
    np.testing.assert_array_equal(table["value"].to_numpy(dtype=np.float32), values)
    with np.load(io.BytesIO(bytes(packed)), allow_pickle=False) as saved:
        assert saved["token_token"].tolist() == tokens
        assert saved["x"].tobytes() == values.tobytes()


def test_what_is_painted_on_a_canvas_is_the_same_as_vectors(page: Page, address: str):
    page.goto(f"{address}{HEADS}")
    wait_until_painted(page, 3)
    differing, inked = page.evaluate(
        """async (scripts) => {
          const { SvgContext } = await import(`${scripts}/takeaway/svg_context.js`);
          const draw = (context) => {
            context.fillStyle = 'rgb(200, 30, 30)';
            context.fillRect(10, 10, 30, 20);
            context.save();
            context.translate(100, 40);
            context.rotate(Math.PI / 6);
            context.globalAlpha = 0.5;
            context.strokeStyle = '#0055aa';
            context.lineWidth = 4;
            context.strokeRect(-20, -10, 40, 20);
            context.restore();
            context.beginPath();
            context.moveTo(10, 100);
            context.bezierCurveTo(40, 40, 80, 160, 120, 100);
            context.lineTo(190, 60);
            context.setLineDash([8, 4]);
            context.lineWidth = 3;
            context.stroke();
            context.setLineDash([]);
            context.beginPath();
            context.arc(160, 150, 30, 0, 2 * Math.PI);
            context.fill();
            context.beginPath();
            context.arc(60, 150, 30, 0.5, 2);
            context.stroke();
            context.beginPath();
            context.roundRect(130, 20, 60, 50, 12);
            context.stroke();
            const dots = new ImageData(new Uint8ClampedArray(8 * 8 * 4).fill(120), 8, 8);
            context.putImageData(dots, 150, 40);
          };
          const pixels = (source) => {
            const canvas = new OffscreenCanvas(200, 200).getContext('2d');
            canvas.fillStyle = '#ffffff';
            canvas.fillRect(0, 0, 200, 200);
            canvas.drawImage(source, 0, 0, 200, 200);
            return canvas.getImageData(0, 0, 200, 200).data;
          };
          const canvas = new OffscreenCanvas(200, 200);
          draw(canvas.getContext('2d'));
          const vectors = new SvgContext(200, 200);
          draw(vectors);
          const image = new Image();
          image.src = `data:image/svg+xml,${encodeURIComponent(SvgContext.document([vectors], '#ffffff', 1))}`;
          await image.decode();
          const [one, other] = [pixels(canvas), pixels(image)];
          return [one.filter((value, i) => Math.abs(value - other[i]) > 40).length, one.filter((v) => v < 128).length];
        }""",
        SCRIPTS,
    )
    assert inked > 5000
    assert differing < 200
