"""Accuracy taken apart, as a person uses it: a column is a step, a row an input, a head is left out."""

import re

from playwright.sync_api import Page, expect

from tests.kit.driving import plot, point_at_cell, query, title, wait_until_painted


def test_a_column_is_a_step_and_a_row_is_an_input(page: Page, address: str):
    page.goto(f"{address}/accuracy?run=reverse&sequences=256")
    wait_until_painted(page, plots=2)
    point_at_cell(plot(page, "depth-training"), row=9, column=17)
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(query(step="20"))
    expect(page.get_by_text("Every page shows step 20 now")).to_be_visible()
    wait_until_painted(page, plots=2)
    page.get_by_role("radio", name="hardest").click()
    expect(page).to_have_url(query(step="20", depth="hardest"))
    said = page.get_by_text(re.compile(r"answers are wrong\. The hardest input is [\d ]+: \d tokens wrong\."))
    hardest = re.search(r"The hardest input is ([\d ]+):", said.inner_text())[1]
    wait_until_painted(page, plots=1)
    table = page.locator(".st-key-depth-hardest .dvn-scroller")  # it lies on the canvas
    table.click(position={"x": 18, "y": 38 + 17})  # the tick of the first row
    expect(page).to_have_url(query(input=hardest.replace(" ", "+")))
    page.get_by_role("radio", name="by head").click()
    wait_until_painted(page, plots=2)
    point_at_cell(plot(page, "depth-head"), row=4, column=3)
    page.mouse.down()
    page.mouse.up()
    page.get_by_role("button", name="Go on without head 0.3").click()
    expect(title(page)).to_contain_text("With head 0.3 removed")
