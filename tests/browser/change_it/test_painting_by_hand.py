"""Painting a mask in a real browser: dragging, brushes, undo across reruns, keys, and a canvas that never blinks."""

from __future__ import annotations

import re
import zlib
from base64 import b64decode, b64encode, urlsafe_b64encode
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
from playwright.sync_api import Locator, Page, expect

from dashboard.components.painter import Painter, Squares
from dashboard.theme import LIGHT
from tests.kit.driving import PAGES, PAINTED, drag, point_at, title, wait_until_painted


def open_masks(page: Page, address: str, mask: str = "causal") -> Locator:
    page.goto(f"{address}/masks?run=reverse&mask={mask}")
    host = page.locator(".painter[data-draws]")
    host.wait_for()
    wait_until_painted(page, PAGES["Mask effects"])
    return host


def stroke(host: Locator, *cells: tuple[int, int]) -> None:
    drag(host, PAINTED, *map(list, cells))


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
    stroke(host, (8, 2), (8, 7))  # in one leap: there are no gaps
    cells[8, 2:8] = False
    np.testing.assert_array_equal(drawn(host), cells)
    expect(page).to_have_url(link_of(cells))
    expect(title(page)).to_have_text(re.compile(r"^Under the painted mask the second half falls from 1\.00 to 0\.\d\d"))
    stroke(host, (0, 5), (1, 5), (8, 5))  # over forbidden and allowed ones: all of them are allowed
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


def test_the_mask_of_python_is_drawn_once_it_knows_the_last_stroke(page: Page, address: str):
    """A way back may be answered together with the stroke before it: what Python said last then says the same again."""
    host = open_masks(page, address)
    causal, full = np.tri(16, dtype=bool), np.ones((16, 16), dtype=bool)
    names = [str(place) for place in range(16)]

    def say(cells: np.ndarray, answered: int) -> None:
        message = Painter(cells, names, names, key="painter", alt="A mask.", answered=answered).pack(LIGHT)
        host.evaluate(
            """(host, text) => host.__painter.update(
              Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), (_, { at }) => (host.at = at))""",
            b64encode(message).decode(),
        )

    say(causal, answered=0)
    page.get_by_role("button", name="Clear").click()
    np.testing.assert_array_equal(drawn(host), full)
    at = host.evaluate("host => host.at")
    say(causal, answered=at - 1)  # on its way when the stroke was made
    np.testing.assert_array_equal(drawn(host), full)
    say(causal, answered=at)
    np.testing.assert_array_equal(drawn(host), causal)


def test_brushes_mirrors_and_a_query_that_sees_nothing(page: Page, address: str):
    host = open_masks(page, address, "full")
    tool = page.locator(".tools button")
    expect(tool).to_have_count(12)
    page.get_by_role("radio", name="Brush: row").click()
    stroke(host, (4, 2))
    cells = np.ones((16, 16), dtype=bool)
    cells[4] = False
    expect(page).to_have_url(link_of(cells))
    expect(page.locator(".blind")).to_have_text("⊘ Query '5' at 5 may see nothing: its attention is zero.")
    page.get_by_role("button", name="Clear").click()
    expect(page).to_have_url(re.compile("mask=full$"))
    expect(page.locator(".blind")).to_be_empty()
    page.get_by_role("radio", name="Brush: cell").click()
    page.get_by_role("button", name="Mirror at the diagonal", exact=True).click()
    stroke(host, (2, 9))
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
    stroke(host, (12, 3))
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


def test_many_positions_are_painted_in_squares(page: Page, address: str):
    """A canvas of 500 positions in squares of 6 × 6, the last of two: what is told is exact, cell by cell."""
    host = open_masks(page, address)
    n, side = 500, 84
    names, labels = [f"t{i}" for i in range(n)], [f"s{i}" for i in range(side)]

    def say(cells: np.ndarray, refused: int = 0) -> None:
        """What Python would send."""
        message = Painter(
            cells, names, names, key="tried", alt="A mask.", squares=Squares(6, labels, labels),
            refused=refused,
        ).pack(LIGHT)  # fmt: skip
        host.evaluate(
            """(host, text) => {
              const said = (host.said ??= []);
              host.__painter.update(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), (_, each) => said.push(each));
            }""",
            b64encode(message).decode(),
        )

    def told() -> np.ndarray:
        """The last stroke that was reported, its bits read one by one."""
        said = host.evaluate("host => host.said.at(-1)")
        assert said["n"] == n
        bits = "".join(f"{byte:08b}" for byte in b64decode(said["cells"]))
        return np.array([bit == "1" for bit in bits[: n * n]]).reshape(n, n)

    cells = np.tri(n, dtype=bool)
    say(cells)
    sentence = page.locator(".st-key-painter .sentence")
    point_at(host, PAINTED, [40, 40])
    expect(sentence).to_have_text("Queries at 241–246, keys at 241–246: may see, in 21 of 36 cells")
    point_at(host, PAINTED, [83, 0])
    expect(sentence).to_have_text("Every query at 499–500 may see every key at 1–6")
    stroke(host, (40, 3), (40, 9))
    cells[240:246, 18:60] = False
    np.testing.assert_array_equal(told(), cells)
    stroke(host, (20, 20), (20, 20))  # seen in part: all of it is allowed
    cells[120:126, 120:126] = True
    np.testing.assert_array_equal(told(), cells)
    page.get_by_role("button", name="Mirror at the diagonal", exact=True).click()
    page.get_by_role("radio", name="Brush: row").click()
    stroke(host, (83, 2))
    cells[498:] = cells[:, 498:] = False
    np.testing.assert_array_equal(told(), cells)
    blind = "⊘ Queries 't498' at 499 and 't499' at 500 may see nothing: their attention is zero."
    expect(page.locator(".blind")).to_have_text(blind)
    page.get_by_role("button", name="Invert").click()
    np.testing.assert_array_equal(told(), ~cells)
    page.keyboard.press("Control+z")
    np.testing.assert_array_equal(told(), cells)
    say(cells)
    host.focus()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Clear").click()
    assert told().all()
    say(cells, refused=7)  # Python cannot have it: the picture goes back, and so does what can be undone
    back = np.array(host.evaluate("host => Array.from(host.__painter.cells)"), dtype=bool).reshape(n, n)
    np.testing.assert_array_equal(back, cells)
    page.get_by_role("button", name="Undo").click()
    cells[498:] = np.tri(n, dtype=bool)[498:]
    cells[:, 498:] = np.tri(n, dtype=bool)[:, 498:]
    np.testing.assert_array_equal(told(), cells)
