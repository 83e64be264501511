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
from tests.kit.driving import PAGES, PAINTED, drag, point_at, query, title, wait_until_painted

MANY_MOVES = """async (host) => {
  const one = host.__painter, { left, top } = host.getBoundingClientRect(), frames = [], before = host.said.length;
  const place = (i) => ({ clientX: left + (one.layout.box.x + i) / one.ratio, bubbles: true,
    clientY: top + (one.layout.box.y + 40) / one.ratio, pointerId: 1, isPrimary: true });
  host.setPointerCapture = () => {};
  host.dispatchEvent(new PointerEvent('pointerdown', place(3)));
  for (let i = 0; i < 20; i++) {
    await new Promise(requestAnimationFrame);
    const drawn = one.frames;
    for (let k = 0; k < 10; k++) host.dispatchEvent(new PointerEvent('pointermove', place(3 + 10 * i + k)));
    await new Promise(requestAnimationFrame);
    frames.push(one.frames - drawn);
  }
  delete host.setPointerCapture;
  const during = host.said.length - before;
  host.dispatchEvent(new PointerEvent('pointerup', place(3)));
  return [frames, during, host.said.length - before];
}"""
"""A stroke of ten moves a frame: how often each frame was drawn, how often it was told until its end, and in all."""


def open_masks(page: Page, address: str, mask: str = "causal") -> Locator:
    page.goto(f"{address}/masks?run=reverse&mask={mask}&sequences=256")
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
    return query(mask=quote(f"painted:16:{text}", safe=""))


def say(host: Locator, painter: Painter) -> None:
    """Tell the painter what Python would; what it says from then on is noted, and Python hears none of it."""
    host.evaluate(
        """(host, text) => {
          const said = (host.said ??= []);
          host.__painter.update(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), (_, each) => said.push(each));
        }""",
        b64encode(painter.pack(LIGHT)).decode(),
    )


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
    expect(page).to_have_url(query(mask="causal"))
    np.testing.assert_array_equal(drawn(host), np.tri(16, dtype=bool))
    page.keyboard.press("Control+Shift+z")
    expect(page).to_have_url(link_of(cells))
    page.go_back()
    expect(page).to_have_url(query(mask="causal"))
    wait_until_drawn(host, np.tri(16, dtype=bool))
    assert host.evaluate("host => host.mine")


def test_brushes_mirrors_keys_and_a_blind_query_and_what_is_taken_away_is_what_is_painted(
    page: Page, address: str, tmp_path: Path
):
    host = open_masks(page, address, "full")
    expect(page.locator(".tools button")).to_have_count(12)
    page.get_by_role("radio", name="Brush: row").click()
    stroke(host, (4, 2))
    cells = np.ones((16, 16), dtype=bool)
    cells[4] = False
    expect(page).to_have_url(link_of(cells))
    blind = page.locator(".blind")
    expect(blind).to_have_text("⊘ Query '5' at 5 may see nothing: its attention is zero.")
    page.get_by_role("button", name="Clear").click()
    expect(page).to_have_url(query(mask="full"))
    expect(blind).to_be_empty()
    page.get_by_role("radio", name="Brush: cell").click()
    page.get_by_role("button", name="Mirror at the diagonal", exact=True).click()
    stroke(host, (2, 9))
    cells = np.ones((16, 16), dtype=bool)
    cells[2, 9] = cells[9, 2] = False
    expect(page).to_have_url(link_of(cells))
    page.get_by_role("button", name="Invert").click()
    expect(page).to_have_url(link_of(~cells))
    expect(blind).to_have_text(re.compile("and 10 more may see nothing: their attention is zero"))
    page.reload()
    host.wait_for()
    wait_until_painted(page, PAGES["Mask effects"])
    np.testing.assert_array_equal(drawn(host), ~cells)
    page.mouse.move(5, 5)
    host.focus()
    page.keyboard.press("ArrowDown")  # begins with the first cell
    for _ in range(8):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    sentence = page.locator(".st-key-painter .sentence")
    expect(sentence).to_have_text("Query 'SEP' at 9 may not see key '1' at 2")
    page.keyboard.press("Space")
    expect(sentence).to_have_text("Query 'SEP' at 9 may see key '1' at 2")
    cells = ~cells
    cells[8, 1] = True
    expect(page).to_have_url(link_of(cells))
    for kind in ("svg", "csv"):
        page.locator(".st-key-painter .takeaway").click()
        with page.expect_download() as download:
            page.locator(".st-key-painter [role=menuitem]").filter(has_text=kind.upper()).click()
        download.value.save_as(tmp_path / f"mask.{kind}")
    assert "key: looked at" in (tmp_path / "mask.svg").read_text()
    table = pd.read_csv(tmp_path / "mask.csv", comment="#")
    np.testing.assert_array_equal(table["may_see"].to_numpy().reshape(16, 16), cells)


def test_what_python_says_is_drawn_once_it_knows_the_last_stroke_and_500_positions_are_painted_in_squares(
    page: Page, address: str
):
    """A painter by itself, told by the test what Python would say: first of 16 positions, then of 500.

    A way back may be answered together with the stroke before it: what Python said last then says the same again. Of
    500 positions the canvas has squares of 6 × 6, the last of two: what is told is exact, cell by cell.
    """
    host = open_masks(page, address)
    causal, full = np.tri(16, dtype=bool), np.ones((16, 16), dtype=bool)
    few = [str(place) for place in range(16)]

    def answer(answered: int) -> None:
        say(host, Painter(causal, few, few, key="painter", alt="A mask.", answered=answered))

    answer(0)
    page.get_by_role("button", name="Clear").click()
    np.testing.assert_array_equal(drawn(host), full)
    at = host.evaluate("host => host.said.at(-1).at")
    answer(at - 1)  # on its way when the stroke was made
    np.testing.assert_array_equal(drawn(host), full)
    answer(at)
    np.testing.assert_array_equal(drawn(host), causal)

    frames, during, in_all = host.evaluate(MANY_MOVES)
    assert max(frames) == 1, "however many moves fall into a frame, it is drawn once"
    assert (during, in_all) == (0, 1), "a stroke is told once, at its end"

    n, side = 500, 84
    names, labels = [f"t{i}" for i in range(n)], [f"s{i}" for i in range(side)]
    squares = Squares(6, labels, labels)

    def show(cells: np.ndarray, refused: int = 0) -> None:
        say(host, Painter(cells, names, names, key="tried", alt="A mask.", squares=squares, refused=refused))

    def told() -> np.ndarray:
        """The last stroke that was reported, its bits read one by one."""
        said = host.evaluate("host => host.said.at(-1)")
        assert said["n"] == n
        bits = "".join(f"{byte:08b}" for byte in b64decode(said["cells"]))
        return np.array([bit == "1" for bit in bits[: n * n]]).reshape(n, n)

    cells = np.tri(n, dtype=bool)
    show(cells)
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
    show(cells)
    host.focus()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Clear").click()
    assert told().all()
    show(cells, refused=7)  # Python cannot have it: the picture goes back, and so does what can be undone
    back = np.array(host.evaluate("host => Array.from(host.__painter.cells)"), dtype=bool).reshape(n, n)
    np.testing.assert_array_equal(back, cells)
    page.get_by_role("button", name="Undo").click()
    cells[498:] = np.tri(n, dtype=bool)[498:]
    cells[:, 498:] = np.tri(n, dtype=bool)[:, 498:]
    np.testing.assert_array_equal(told(), cells)
