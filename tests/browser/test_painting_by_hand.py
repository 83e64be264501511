"""Painting a mask in a real browser: dragging, brushes, undo across reruns, keys, and a canvas that never blinks."""

from __future__ import annotations

import re
import zlib
from base64 import urlsafe_b64encode
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from driving import PAGES, title, wait_until_painted
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser


def open_masks(page: Page, address: str, mask: str = "causal") -> Locator:
    page.goto(f"{address}/masks?run=reverse&mask={mask}")
    host = page.locator(".painter[data-draws]")
    host.wait_for()
    wait_until_painted(page, PAGES["Mask effects"])
    return host


def at(host: Locator, row: int, column: int) -> tuple[float, float]:
    """The middle of a cell, counted from 0, in the window."""
    host.scroll_into_view_if_needed()
    x, y = host.evaluate(
        """(host, [row, column]) => {
          const { layout: { box }, ratio } = host.__painter;
          const { left, top } = host.getBoundingClientRect();
          return [left + (box.x + (column + 0.5) * box.step) / ratio, top + (box.y + (row + 0.5) * box.step) / ratio];
        }""",
        [row, column],
    )
    return x, y


def drag(page: Page, host: Locator, *cells: tuple[int, int]) -> None:
    page.mouse.move(*at(host, *cells[0]))
    page.mouse.down()
    for cell in cells[1:]:
        page.mouse.move(*at(host, *cell))
    page.mouse.up()


def drawn(host: Locator) -> np.ndarray:
    cells = host.evaluate("host => Array.from(host.__painter.cells)")
    return np.array(cells, dtype=bool).reshape(16, 16)


def wait_until_drawn(host: Locator, cells: np.ndarray) -> None:
    """Until Python has said that the mask is another: the address changes before."""
    host.page.wait_for_function(
        "([host, cells]) => Array.from(host.__painter.cells).join('') === cells",
        arg=[host.element_handle(), "".join(str(int(cell)) for cell in cells.ravel())],
    )


def link_of(cells: np.ndarray) -> re.Pattern[str]:
    """The address of a painted mask, its text made anew here."""
    packed = np.packbits(cells).tobytes()
    inflated = zlib.compressobj(9, zlib.DEFLATED, -15)
    squeezed = inflated.compress(packed) + inflated.flush()
    text = urlsafe_b64encode(min(squeezed, packed, key=len)).decode().rstrip("=")
    return re.compile(re.escape(f"mask={quote(f'painted:16:{text}', safe='')}") + "$")


def test_a_drag_paints_what_the_first_cell_becomes_and_is_answered(page: Page, address: str):
    host = open_masks(page, address)
    host.evaluate("host => (host.mine = true)")
    cells = np.tri(16, dtype=bool)
    drag(page, host, (8, 2), (8, 7))  # in one leap: there are no gaps
    cells[8, 2:8] = False
    np.testing.assert_array_equal(drawn(host), cells)
    expect(page).to_have_url(link_of(cells))
    expect(title(page)).to_have_text(re.compile(r"^Under the painted mask the second half falls from 1\.00 to 0\.\d\d"))
    drag(page, host, (0, 5), (1, 5), (8, 5))  # over forbidden and allowed ones: all of them are allowed
    cells[:9, 5] = True
    expect(page).to_have_url(link_of(cells))
    np.testing.assert_array_equal(drawn(host), cells)
    page.keyboard.press("Control+z")
    cells[:5, 5] = cells[8, 5] = False
    expect(page).to_have_url(link_of(cells))
    page.keyboard.press("Control+z")
    expect(page).to_have_url(re.compile("mask=causal$"))
    np.testing.assert_array_equal(drawn(host), np.tri(16, dtype=bool))
    page.keyboard.press("Control+Shift+z")
    expect(page).to_have_url(link_of(cells))
    page.go_back()
    expect(page).to_have_url(re.compile("mask=causal$"))
    wait_until_drawn(host, np.tri(16, dtype=bool))
    assert host.evaluate("host => host.mine")


def test_brushes_mirrors_and_a_query_that_sees_nothing(page: Page, address: str):
    host = open_masks(page, address, "full")
    tool = page.locator(".tools button")
    expect(tool).to_have_count(12)
    page.get_by_role("radio", name="Brush: row").click()
    drag(page, host, (4, 2))
    cells = np.ones((16, 16), dtype=bool)
    cells[4] = False
    expect(page).to_have_url(link_of(cells))
    expect(page.locator(".blind")).to_have_text("⊘ Query '5' at 5 may see nothing: its attention is zero.")
    page.get_by_role("button", name="Clear").click()
    expect(page).to_have_url(re.compile("mask=full$"))
    expect(page.locator(".blind")).to_be_empty()
    page.get_by_role("radio", name="Brush: cell").click()
    page.get_by_role("button", name="Mirror at the diagonal", exact=True).click()
    drag(page, host, (2, 9))
    cells = np.ones((16, 16), dtype=bool)
    cells[2, 9] = cells[9, 2] = False
    expect(page).to_have_url(link_of(cells))
    page.get_by_role("button", name="Invert").click()
    expect(page).to_have_url(link_of(~cells))
    expect(page.locator(".blind")).to_have_text(re.compile("and 10 more may see nothing: their attention is zero"))


def test_keys_paint_and_the_sentence_says_what(page: Page, address: str):
    host = open_masks(page, address)
    sentence = page.locator(".st-key-painter .sentence")
    host.focus()
    page.keyboard.press("ArrowDown")
    for _ in range(8):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(sentence).to_have_text("Query 'SEP' at 9 may see key '1' at 2")
    page.keyboard.press("Space")
    expect(sentence).to_have_text("Query 'SEP' at 9 may not see key '1' at 2")
    cells = np.tri(16, dtype=bool)
    cells[8, 1] = False
    expect(page).to_have_url(link_of(cells))
    page.reload()
    host.wait_for()
    wait_until_painted(page, PAGES["Mask effects"])
    np.testing.assert_array_equal(drawn(host), cells)


def test_the_mask_can_be_taken_away_as_it_is_painted(page: Page, address: str, tmp_path: Path):
    host = open_masks(page, address)
    drag(page, host, (12, 3))
    cells = np.tri(16, dtype=bool)
    cells[12, 3] = False
    expect(page).to_have_url(link_of(cells))
    for kind in ("svg", "csv"):
        page.locator(".st-key-painter .takeaway").click()
        with page.expect_download() as download:
            page.locator(".st-key-painter [role=menuitem]").filter(has_text=kind.upper()).click()
        download.value.save_as(tmp_path / f"mask.{kind}")
    assert "key: looked at" in (tmp_path / "mask.svg").read_text()
    table = pd.read_csv(tmp_path / "mask.csv", comment="#")
    np.testing.assert_array_equal(table["may_see"].to_numpy().reshape(16, 16), cells)


def test_many_moves_are_drawn_once_a_frame_and_told_once(page: Page, address: str):
    host = open_masks(page, address)
    told, drawn_frames = host.evaluate(
        """async (host) => {
          const one = host.__painter, { left, top } = host.getBoundingClientRect(), fire = one.fire;
          let told = 0;
          one.fire = (...said) => { told += 1; fire(...said); };
          const place = (i) => ({ clientX: left + (one.layout.box.x + i) / one.ratio, bubbles: true,
            clientY: top + (one.layout.box.y + 40) / one.ratio, pointerId: 1, isPrimary: true });
          host.setPointerCapture = () => {};
          host.dispatchEvent(new PointerEvent('pointerdown', place(3)));
          const frames = [];
          for (let i = 0; i < 20; i++) {
            await new Promise(requestAnimationFrame);
            const before = one.frames;
            for (let k = 0; k < 10; k++) host.dispatchEvent(new PointerEvent('pointermove', place(3 + 10 * i + k)));
            await new Promise(requestAnimationFrame);
            frames.push(one.frames - before);
          }
          const silent = told === 0;
          host.dispatchEvent(new PointerEvent('pointerup', place(3)));
          return [silent ? told : -1, frames];
        }"""
    )
    assert told == 1
    assert max(drawn_frames) == 1
