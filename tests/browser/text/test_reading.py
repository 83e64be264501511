"""The page "It reads" in a browser: a click on the map of distances chooses a head everywhere."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.kit.driving import plot, point_at_cell, query, wait_until_painted


def test_a_row_of_the_map_is_a_head(page: Page, address: str) -> None:
    page.goto(f"{address}/reading?run=reverse")
    wait_until_painted(page, 4)
    point_at_cell(plot(page, "reading-map"), 5, 2)
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(query(head="decoder.1.self_attention.1"))
    for words in ("Head 1.1 looks", "Head 1.1 puts"):
        expect(page.get_by_text(words).first).to_be_visible()
