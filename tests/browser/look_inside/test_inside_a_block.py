"""Inside a block by hand: its parts by key, and columns that move from step to step unless motion is unwanted."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.kit.driving import SETTLED, plot, title, two_frames, wait_until_painted
from tests.kit.waiting import wait_for

WATCH = """() => {
  window.seen = new Set();
  const look = () => {
    const column = document.querySelector('.st-key-split .barlayer .point path');
    if (column) window.seen.add(Math.round(column.getBoundingClientRect().x));
    requestAnimationFrame(look);
  };
  look();
}"""


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_columns_move_and_parts_are_gone_through_by_key(page: Page, address: str, motion: str):
    page.emulate_media(reduced_motion=motion)
    page.goto(f"{address}/block?run=reverse&joint=project")
    wait_until_painted(page, 3)
    page.evaluate(WATCH)
    drawn = int(plot(page, "split").get_attribute("data-draws"))
    page.get_by_text("Split", exact=True).click()
    expect(page).to_have_url(re.compile("joint=split"))
    expect(plot(page, "split")).not_to_have_attribute("data-draws", str(drawn))
    places = lambda: page.evaluate("window.seen.size")  # noqa: E731
    if motion == "no-preference":
        wait_for("a column on its way", places, lambda seen: seen > 3)
    else:
        page.wait_for_function(SETTLED)
        two_frames(page)
        assert places() <= 3
    page.keyboard.press("f")
    expect(title(page)).to_contain_text("LayerNorm")
    page.keyboard.press("f")
    expect(title(page)).to_contain_text("hidden units")
    page.keyboard.press("b")
    expect(page).to_have_url(re.compile("part=norm"))
