"""What is given away: each file opened with the tools it is meant for, its numbers against the model's own."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
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

from tests.kit.driving import PAGES, SCRIPTS, wait_until_painted
from tests.kit.takeaway import DC, DIGEST, FORMATS, NAMES, RUN, STEP, TOKENS, WEIGHTS, pixels, save
from tests.kit.waiting import wait_for
from transformer import checkpoints, observe

HEAD = f"run={RUN}&head=decoder.0.self_attention.2"
TABLE, STRIP = "inside-numbers", "inside-steps"
VIEWS = {
    f"/inside?{HEAD}&operation=divide": (PAGES["Inside a head"], (TABLE, STRIP)),
    f"/masks?{HEAD}&mask=causal": (PAGES["Mask effects"], ("after-pattern",)),
    f"/heads?{HEAD}": (PAGES["Attention heads"], ("heads", "head-pattern")),
}
"""A table and a strip of steps; a matrix; a canvas and a figure of several panels: on which page, of how many plots."""
PLOTTED = ("after-pattern", "heads", "head-pattern")
MASK = np.tri(16, dtype=bool)
PLACE = 8
"""The query inside the head, counted from 0: SEP, the first of the answer."""
SVG = "{http://www.w3.org/2000/svg}"
Files = dict[tuple[str, str], Path]


@pytest.fixture(scope="module")
def seen() -> dict[str, np.ndarray]:
    """The pattern of each head on the page's own input, by the name that the page gives the head, and scores of one."""
    model, _ = checkpoints.load(WEIGHTS)
    observed = observe(model, torch.tensor([TOKENS]))
    layers = [observed[f"decoder.{layer}.self_attention.pattern"][0].numpy() for layer in range(2)]
    patterns = {f"{layer}.{head}": pattern for layer, heads in enumerate(layers) for head, pattern in enumerate(heads)}
    return patterns | {"scores": observed["decoder.0.self_attention.scores"][0, 2, PLACE].numpy()}


@pytest.fixture(scope="module")
def taken(common: Page, address: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Files, list[str]]:
    """All in all formats, and the texts of the table. What is painted is twice as large as on the screen."""
    folder, files = tmp_path_factory.mktemp("taken"), {}
    for view, (plots, keys) in VIEWS.items():
        common.goto(f"{address}{view}")
        wait_until_painted(common, plots)
        files |= {(key, kind): save(common, key, kind, folder) for key in keys for kind in FORMATS}
        if TABLE in keys:
            cells = common.locator(f".st-key-{TABLE} :is(th, td)").all_inner_texts()
        for key, place, margin in ((TABLE, "table", 16), ("after-pattern", ".al-plot", 0)):
            if key in keys:
                box = common.locator(f".st-key-{key} {place}").bounding_box()
                size = pixels(files[key, "png"].read_bytes()).shape[1::-1]
                assert size == pytest.approx((2 * (box["width"] + margin), 2 * (box["height"] + margin)), abs=6)
    return files, [text for text in cells if text]


@pytest.fixture
def files(taken: tuple[Files, list[str]]) -> Files:
    return taken[0]


@pytest.fixture
def texts(taken: tuple[Files, list[str]]) -> list[str]:
    """What stands in the table."""
    return taken[1]


@pytest.fixture
def links(address: str) -> dict[str, str]:
    """Of the views they were saved in: the step, which was the last, is named."""
    return {key: f"{address}{view}&step={STEP}" for view, (_, keys) in VIEWS.items() for key in keys}


def letters(file: Path) -> list[str]:
    """The texts of a picture of vectors."""
    return ["".join(each.itertext()).strip() for each in ElementTree.parse(file).getroot().iter(f"{SVG}text")]


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


def test_the_files_say_what_they_are_and_where_they_come_from(files: Files, links: dict[str, str]):
    made = {"makers": [{"run": RUN, "step": STEP, "weights": DIGEST}]}
    for (key, kind), file in files.items():
        assert file.name == f"{key}-{RUN}-step{STEP}.{kind}"
    for key, link in links.items():
        said = {each.tag: each.text for each in ElementTree.parse(files[key, "svg"]).getroot().iter()}
        assert said[f"{DC}source"] == link
        assert DIGEST in said[f"{DC}identifier"]
        png = files[key, "png"].read_bytes()
        written = dict(body.split(b"\0\0\0\0\0") for name, body in chunks(png) if name == b"iTXt")
        assert written[b"Source"].decode() == link
        with np.load(files[key, "npz"], allow_pickle=False) as saved:
            for origin in (json.loads(written[b"origin"]), json.loads(saved["origin"].item())):
                assert origin == origin | made | {"link": link}
        Image.open(io.BytesIO(png)).verify()
        assert (pixels(png).std(axis=(0, 1)) > 10).all(), "it is not blank"
        text = files[key, "csv"].read_text()
        assert f"# link: {link}\n# weights: sha256:{DIGEST} ({RUN}, step {STEP})\n" in text
    for key in PLOTTED:
        assert letters(files[key, "svg"]).count("SEP") >= 2


def test_the_numbers_of_a_figure_are_the_models_own(files: Files, seen: dict[str, np.ndarray]):
    with np.load(files["heads", "npz"], allow_pickle=False) as saved:
        for name in (f"{layer}.{head}" for layer in range(2) for head in range(4)):
            assert saved[f"head_{name}"].dtype == np.float32
            np.testing.assert_allclose(saved[f"head_{name}"], seen[name], atol=2e-6)
            np.testing.assert_array_equal(saved[f"head_{name}.mask"], MASK)
        assert saved["query_token"].tolist() == saved["key_token"].tolist() == NAMES
    with np.load(files["head-pattern", "npz"], allow_pickle=False) as saved:
        np.testing.assert_allclose(saved["pattern"], np.where(MASK, seen["0.2"], np.nan), atol=2e-6)
        np.testing.assert_array_equal(saved["pattern.mask"], MASK)
        np.testing.assert_array_equal(np.isnan(saved["contribution"]), ~MASK)
        assert saved["query_token"].tolist() == saved["key_token"].tolist() == NAMES
        assert saved["query"].tolist() == saved["key"].tolist() == list(range(1, 17))
    with np.load(files["after-pattern", "npz"], allow_pickle=False) as saved:
        np.testing.assert_allclose(saved["values"], np.where(MASK, seen["0.2"], np.nan), atol=2e-6)
        np.testing.assert_array_equal(saved["mask"], MASK)
        assert set(saved.files) == {"values", "mask", "query", "query_token", "key", "key_token", "origin"}
    for key, series in (("heads", "head 0.2"), ("after-pattern", "values"), ("head-pattern", "pattern")):
        table = pd.read_csv(files[key, "csv"], comment="#", dtype={"query_token": str, "key_token": str})
        table = table[table.series == series]
        assert table.key_token.tolist() == NAMES * 16
        assert table["query"].tolist() == np.repeat(np.arange(1, 17), 16).tolist()
        values = np.where(MASK, table["value"].to_numpy().reshape(16, 16), 0).astype(np.float32)
        np.testing.assert_allclose(values, np.where(MASK, seen["0.2"], 0), atol=2e-6)
        assert (table["mask"].to_numpy().reshape(16, 16) == MASK).all()


def test_the_numbers_of_a_table_are_the_models_own(files: Files, texts: list[str], seen: dict[str, np.ndarray]):
    labels = [*NAMES, "Σ"]
    with np.load(files[TABLE, "npz"], allow_pickle=False) as saved:
        arrays = {name: saved[name] for name in saved.files}
    np.testing.assert_allclose(arrays["scaled"][:16], seen["scores"], atol=2e-6)
    np.testing.assert_allclose(arrays["pattern"][:16], seen["0.2"][PLACE], atol=2e-6)
    np.testing.assert_array_equal(arrays["pattern.mask"], np.arange(17) <= PLACE + 8 * (np.arange(17) == 16))
    np.testing.assert_array_equal(arrays["key"], [*range(1, 17), np.nan])
    assert arrays["key_token"].tolist() == labels
    assert arrays["may_see"].tolist() == ["yes"] * 9 + ["no"] * 7 + [""]
    table = pd.read_csv(files[TABLE, "csv"], comment="#", dtype={"key_token": str, "value": str})
    for name in ("dots", "scaled", "exponentials", "pattern"):
        rows = table[table.series == name]
        assert rows.key_token.tolist() == labels
        np.testing.assert_array_equal(
            np.array([float(text) for text in rows["value"]], arrays[name].dtype), arrays[name]
        )
        digits = [f"{value:.4f}".replace("-", "−") for value in arrays[name] if not np.isnan(value)]
        assert Counter(digits) <= Counter(texts), "every number on the screen is a saved one, rounded"
    with np.load(files[STRIP, "npz"], allow_pickle=False) as saved:
        np.testing.assert_array_equal(saved["pattern"], arrays["pattern"][:16].astype(np.float32))
        assert saved["keys"].shape == saved["values"].shape == (16, 16)
        assert saved["total"] == arrays["exponentials"][16]


def test_the_picture_of_a_table_is_made_of_its_texts_and_boxes(files: Files, texts: list[str]):
    svg = ElementTree.parse(files[TABLE, "svg"]).getroot()
    assert not {f"{SVG}{name}" for name in ("foreignObject", "image", "script")} & {each.tag for each in svg.iter()}
    written = Counter("".join(letters(files[TABLE, "svg"])).replace(" ", ""))
    assert written == Counter("".join(texts).replace(" ", ""))
    assert len(list(svg.iter(f"{SVG}path"))) == 3 * 7 + 1, "what is forbidden is hatched, and the chosen key is framed"
    assert len({each.get("fill") for each in svg.iter(f"{SVG}rect")}) > 15


def test_pages_and_vectors_open_from_the_disk_without_a_network(
    files: Files, texts: list[str], seen: dict[str, np.ndarray], chromium: Browser, links: dict[str, str]
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
            np.testing.assert_allclose(inside["head_1.3"], seen["1.3"], atol=2e-6)
        assert Axe().run(alone).response["violations"] == []
        alone.goto(files[TABLE, "html"].as_uri())
        assert [text for text in alone.locator("table :is(th, td)").all_inner_texts() if text] == texts
        assert alone.locator("table").get_attribute("aria-label") == alone.title()
        assert Axe().run(alone).response["violations"] == []
        alone.goto(files[STRIP, "html"].as_uri())
        expect(alone.get_by_role("img", name="Step 8 of 12: ÷ Σ")).to_be_visible()
        # Vectors and pixels are one picture: letters may be set in another font, cells stand where they stand.
        for key, most in (("heads", 0.02), (TABLE, 0.06), (STRIP, 0.06)):
            alone.goto(files[key, "svg"].as_uri())
            vectors, painted = pixels(alone.screenshot()), pixels(files[key, "png"].read_bytes())
            high, wide = (min(a, b) for a, b in zip(vectors.shape[:2], painted.shape[:2], strict=True))
            assert (np.abs(vectors[:high, :wide] - painted[:high, :wide]).max(axis=2) > 24).mean() < most
        assert complaints == []


def test_a_table_too_wide_for_the_window_and_a_strip_of_tokens_are_saved_whole(
    page: Page, address: str, tmp_path: Path
):
    page.set_viewport_size({"width": 600, "height": 800})
    page.goto(f"{address}/inside?{HEAD}&operation=divide")
    wait_until_painted(page, PAGES["Inside a head"])
    table = page.locator(f".st-key-{TABLE} table")
    assert table.evaluate("table => table.offsetWidth > table.parentElement.clientWidth")
    file = save(page, TABLE, "svg", tmp_path)
    assert float(ElementTree.parse(file).getroot().get("width")) >= 640
    assert "÷ Σ" in letters(file)
    page.goto(f"{address}/?run=reverse&step=13")
    wait_until_painted(page, PAGES["Overview"])
    # Not Streamlit's own menu of pages, which a phone finds in the sidebar: its lists hold lists that are no items.
    assert Axe().run(page, context="[data-testid=stMain]").response["violations"] == []
    written = Counter(letters(save(page, "overview-tokens", "svg", tmp_path)))
    assert written["SEP"] >= 1
    assert written["✓"] + written["✕"] == 8


@pytest.mark.usefixtures("taken")
def test_the_menu_is_there_for_the_keyboard(common: Page):
    for key in ("head-pattern", "heads"):
        common.mouse.move(0, 0)
        place = common.locator(f".st-key-{key}")
        button, menu = place.get_by_role("button", name=f"Save {key}"), place.get_by_role("menu")
        items = place.get_by_role("menuitem")
        button.focus()
        expect(button).to_have_css("opacity", "1")
        common.keyboard.press("Enter")
        expect(menu).to_be_visible()
        expect(button).to_have_attribute("aria-expanded", "true")
        expect(items.first).to_be_focused()
        common.keyboard.press("ArrowUp")
        expect(items.last).to_be_focused()
        assert Axe().run(common).response["violations"] == []
        common.keyboard.press("Escape")
        expect(menu).to_be_hidden()
        expect(button).to_be_focused()
        expect(button).to_have_attribute("aria-expanded", "false")


BESIDE = """async menu => {
  await new Promise(requestAnimationFrame);
  const list = menu.parentElement, button = list.previousElementSibling;
  const [there, here] = [list, button].map((each) => each.getBoundingClientRect());
  return { button: here.top, apart: Math.round(there.top - here.bottom) };
}"""
"""As it is painted: a page tells of its scrolling once a frame, before that."""


def test_the_menu_stays_at_its_button_while_the_page_moves_and_closes_without_it(common: Page, address: str):
    """A page that still arrives moves below a menu that was opened in the meantime."""
    common.goto(f"{address}/heads?{HEAD}")
    wait_until_painted(common, PAGES["Attention heads"])
    place, main = common.locator(".st-key-head-pattern"), common.get_by_test_id("stMain")
    button, menu = place.get_by_role("button", name="Save head-pattern"), place.get_by_role("menu")
    button.focus()
    common.keyboard.press("Enter")
    expect(menu).to_be_visible()
    for by in (30, -20):
        before = menu.evaluate(BESIDE)
        main.evaluate("(main, by) => main.scrollBy(0, by)", by)
        after = wait_for(
            "the page has moved", lambda: menu.evaluate(BESIDE), lambda at, y=before["button"]: at["button"] != y
        )
        assert after["apart"] == before["apart"] == 4
        expect(menu).to_be_visible()
    main.evaluate("main => main.scrollBy(0, 5000)")
    expect(button).not_to_be_in_viewport()
    expect(menu).to_be_hidden()


@pytest.mark.usefixtures("taken")
def test_tokens_of_any_kind_and_numbers_to_the_last_bit(common: Page):
    tokens = [",", '"', "a\nb", "#", "😀é", ""]
    values = np.array([0.1, np.nan, np.inf, -np.inf, 1e-45, -0.0], dtype=np.float32)
    text, packed = common.evaluate(
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


@pytest.mark.usefixtures("taken")
def test_what_is_painted_on_a_canvas_is_the_same_as_vectors(common: Page):
    differing, inked = common.evaluate(
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
