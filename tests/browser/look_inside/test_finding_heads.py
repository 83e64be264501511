"""The heads' table, scatter and map, as a person uses them: each makes another head the one that is enlarged."""

import re

from playwright.sync_api import Page, expect

from tests.kit.driving import click_at, plot, point_at_cell, wait_until_painted


def test_a_point_a_cell_and_a_row_enlarge_their_head(page: Page, address: str):
    page.goto(f"{address}/heads?run=reverse")
    wait_until_painted(page, plots=3)
    heading = page.get_by_test_id("stMain").get_by_text(
        re.compile(
            r"^Head \d\.\d puts .* on the token it "
            r"should output\.$"
        )
    )
    click_at(
        plot(page, "find-scatter"),
        """(host, head) => {
          const stage = host.querySelector('.js-plotly-plot');
          const { left, top } = stage.getBoundingClientRect();
          const { xaxis, yaxis } = stage._fullLayout;
          for (const points of stage.calcdata) {
            const place = (points[0].trace.customdata ?? []).indexOf(head);
            if (place >= 0) {
              const point = points[place];
              return [left + xaxis._offset + xaxis.c2p(point.x), top + yaxis._offset + yaxis.c2p(point.y)];
            }
          }
        }""",
        3,
    )
    expect(heading).to_contain_text("Head 0.3 puts")
    expect(page).to_have_url(re.compile(r"[?&]head=decoder\.0\.self_attention\.3(&|$)"))
    point_at_cell(plot(page, "find-alike"), row=5, column=2)
    page.mouse.down()
    page.mouse.up()
    expect(heading).to_contain_text("Head 1.1 puts")
    wait_until_painted(page, plots=3)  # a tick that was chosen elsewhere makes the table anew, after the heading
    table = page.locator(".st-key-find-table .dvn-scroller")  # it lies on the canvas
    table.click(position={"x": 18, "y": 38 + 35 * 6 + 17})  # the tick of the seventh row
    expect(heading).to_contain_text("Head 1.2 puts")
    expect(page).to_have_url(re.compile(r"[?&]head=decoder\.1\.self_attention\.2(&|$)"))
