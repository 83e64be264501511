"""A position that is dragged: what is read there follows in all figures at once, and the page once it is let go."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SCREEN
from tests.kit.driving import PATIENCE, SETTLED
from tests.kit.waiting import wait_for

FIGURES = ("encoding", "waves", "similarity")
READ = """(figures) => figures.map((key) => {
  const { data, layout } = document.querySelector(`.st-key-${key} .al-plot-stage`);
  const { shape, axis, words } = layout.meta.cursor;
  const { x0, x1, y0, y1 } = layout.shapes[shape];
  return {
    at: axis === 'x' ? (x0 + x1) / 2 : (y0 + y1) / 2,
    words: words ? layout.annotations[words.annotation].text : null,
    curves: data.filter(({ yaxis }) => yaxis === 'y2').map(({ y }) => Array.from(y._inputArray ?? y)),
    large: data.filter(({ marker }) => Array.isArray(marker?.size) || ArrayBuffer.isView(marker?.size))
      .map(({ marker }) => 1 + Array.from(marker.size).indexOf(Math.max(...marker.size))),
  };
})"""
"""Where the cursor of each figure stands, what is written there, and what is read at it."""
ROWS = """(key) => {
  const [cells] = document.querySelector(`.st-key-${key} .al-plot-stage`).calcdata.map(([first]) => first);
  return cells.z.map((row) => Array.from(row));
}"""
"""The numbers of a matrix as they are drawn."""
PLACE = """([key, across, position]) => {
  const stage = document.querySelector(`.st-key-${key} .al-plot-stage`);
  const { left, top } = stage.getBoundingClientRect();
  const { xaxis, yaxis } = stage._fullLayout;
  const inside = (axis, share) => axis._offset + share * axis._length;
  return across
    ? { x: left + xaxis._offset + xaxis.c2p(position), y: top + inside(yaxis, 0.4) }
    : { x: left + inside(xaxis, 0.5), y: top + yaxis._offset + yaxis.c2p(position) };
}"""
"""Where a figure shows a position, in pixels of the window."""


def stand_at(page: Page, position: int) -> None:
    """Wait until the cursors of all figures stand at a position, and what they read there is its row."""
    seen = wait_for(
        f"all cursors stand at {position}",
        lambda: page.evaluate(READ, list(FIGURES)),
        lambda all_: [each["at"] for each in all_] == [position] * len(FIGURES),
    )
    table, waves, similar = seen
    row = page.evaluate(ROWS, "encoding")[position - 1]
    assert table["curves"] == [pytest.approx(row[0::2], abs=1e-6), pytest.approx(row[1::2], abs=1e-6)]
    assert table["words"] == f"position {position}: sine (solid) and cosine (dashed)"
    assert set(waves["large"]) == {position}
    assert similar["curves"] == [pytest.approx(page.evaluate(ROWS, "similarity")[position - 1], rel=1e-6)]


def test_a_row_is_dragged_by_pointer_and_moved_by_key_and_all_that_is_read_at_it_follows(
    page: Page, address: str
) -> None:
    page.set_viewport_size({**SCREEN, "height": 1400})
    page.goto(f"{address}/positions?run=reverse&encoding=sinusoidal&cursor=8")
    for key in FIGURES:
        page.locator(f".st-key-{key} .al-plot[data-state=ready]").wait_for(timeout=PATIENCE)
    page.wait_for_function(SETTLED)
    stand_at(page, 8)
    begun = page.evaluate(PLACE, ["encoding", False, 2])
    page.mouse.move(**begun)
    page.mouse.down()
    stand_at(page, 2)
    for position in (5, 11):
        page.mouse.move(**page.evaluate(PLACE, ["encoding", False, position]))
        stand_at(page, position)
    assert "cursor=8" in page.url  # Python is told once it is let go
    page.mouse.up()
    expect(page).to_have_url(re.compile("cursor=11"), timeout=PATIENCE)
    page.wait_for_function(SETTLED)
    stand_at(page, 11)

    page.locator(".st-key-similarity .al-plot").press("ArrowDown")
    stand_at(page, 12)
    expect(page).to_have_url(re.compile("cursor=12"), timeout=PATIENCE)
    page.wait_for_function(SETTLED)
    page.mouse.click(**page.evaluate(PLACE, ["waves", True, 3]))
    stand_at(page, 3)
    expect(page).to_have_url(re.compile("cursor=3"), timeout=PATIENCE)
    expect(page.locator(".st-key-control-cursor")).to_contain_text("3")
