"""Following the information with the pointer: a column is clicked, its token is poked."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.kit.driving import MEASURED, cell_in, plot, point_at_cell, query, title, wait_until_painted


def test_a_click_on_a_column_pokes_its_token_and_hover_is_shared(page: Page, address: str) -> None:
    """Also a click right after the pointer came: what Plotly has put off for 50 ms comes while the button is down."""
    page.goto(f"{address}/information?run=reverse")
    wait_until_painted(page, 3)
    moves, slopes = plot(page, "moves"), plot(page, "slopes")
    poked = re.compile("^Replacing '3' at 1 moves 16 of 16 outputs")
    moves.evaluate(
        """async (host, [x, y]) => {
          const drag = host.querySelector('.nsewdrag');
          const at = (type, x) => {
            const where = { clientX: x, clientY: y, bubbles: true, cancelable: true };
            drag.dispatchEvent(new PointerEvent(`pointer${type}`, where)); // as browsers do, before the mouse's own
            drag.dispatchEvent(new MouseEvent(`mouse${type}`, where));
          };
          at('move', x - 3);
          at('move', x);
          at('down', x);
          await new Promise((resolve) => setTimeout(resolve, 60));
          at('up', x);
        }""",
        list(cell_in(moves, 15, 0)),
    )
    expect(title(page)).to_have_text(poked)
    expect(page).to_have_url(query(run="reverse", poked="1"))
    page.go_back()
    expect(title(page)).to_have_text(re.compile("^Replacing '5' at 5"))
    page.wait_for_function(MEASURED)
    point_at_cell(moves, 15, 0)
    expect(moves.locator(".hoverlayer")).to_contain_text("when '3' at 1 is replaced")
    expect(slopes.locator(".al-plot-crosshair > div").first).to_be_visible()
    page.mouse.down()
    page.mouse.up()
    expect(title(page)).to_have_text(poked)
    expect(page).to_have_url(query(run="reverse", poked="1"))
    expect(page.get_by_role("radio", name="3₁")).to_be_checked()
