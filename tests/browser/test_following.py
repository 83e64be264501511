"""Following the information with the pointer: a column is clicked, its token is poked."""

from __future__ import annotations

import re
from collections.abc import Callable

from driving import PATIENCE, click_cell, plot, point_at_cell, query, title, wait_until_painted
from playwright.sync_api import Page, expect


def test_a_click_on_a_column_pokes_its_token_and_hover_is_shared(new_page: Callable[..., Page], address: str) -> None:
    page = new_page()
    page.goto(f"{address}/information?run=reverse")
    wait_until_painted(page, 3)
    moves, slopes = plot(page, "moves"), plot(page, "slopes")
    point_at_cell(page, moves, 15, 0)
    expect(moves.locator(".hoverlayer")).to_contain_text("when '3' at 1 is poked")
    expect(slopes.locator(".al-plot-crosshair > div").first).to_be_visible()
    click_cell(page, moves, 15, 0, title(page).get_by_text(re.compile("^Poking '3' at 1 moves 16 of 16 outputs")))
    expect(page).to_have_url(query(run="reverse", poked="1"))
    expect(page.get_by_role("radio", name="3₁")).to_be_checked()
    page.go_back()
    expect(title(page)).to_have_text(re.compile("^Poking '5' at 5"), timeout=PATIENCE)
