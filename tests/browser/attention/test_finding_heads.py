"""Pictures of all heads, as a person uses them: a point, a cell, a row makes another head the one in focus."""

from playwright.sync_api import Page, expect

from tests.kit.driving import MEASURED, click_at, plot, point_at_cell, query, title, wait_until_painted
from tests.kit.waiting import wait_for


def test_a_point_a_cell_and_a_row_choose_their_head(page: Page, address: str):
    page.goto(f"{address}/heads?run=reverse")
    wait_until_painted(page, plots=3)
    heading = title(page)
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
    expect(page).to_have_url(query(head="decoder.0.self_attention.3"))
    point_at_cell(plot(page, "find-alike"), row=5, column=2)
    page.mouse.down()
    page.mouse.up()
    expect(heading).to_contain_text("Head 1.1 puts")
    wait_until_painted(page, plots=3)  # a tick that was chosen elsewhere makes the table anew, after the heading
    table = page.locator(".st-key-find-table .dvn-scroller")  # it lies on the canvas
    table.click(position={"x": 18, "y": 38 + 35 * 6 + 17})  # the tick of the seventh row
    expect(heading).to_contain_text("Head 1.2 puts")
    expect(page).to_have_url(query(head="decoder.1.self_attention.2"))

    page.goto(f"{address}/reading?run=reverse")  # the menu would open a model that reads text
    wait_until_painted(page, plots=4)
    point_at_cell(plot(page, "reading-map"), 5, 2)
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(query(head="decoder.1.self_attention.1"))
    for words in ("Head 1.1 looks", "Head 1.1 puts"):
        expect(page.get_by_text(words).first).to_be_visible()


FOUND = "() => document.querySelector('.al-glossary')?.__glossary?.heads.found.map(({ name }) => name) ?? []"
MIDDLE = """() => {
  const { heads } = document.querySelector('.al-glossary').__glossary;
  const [{ left, top, width, height }] = heads.found[0].range.getClientRects();
  return [left + width / 2, top + height / 2];
}"""
LIT = "() => [...CSS.highlights.get('al-lit') ?? []].map((each) => each.toString())"
GRID = """() => [...document.querySelectorAll('*')]
  .flatMap(({ shadowRoot }) => [...shadowRoot?.querySelectorAll('.grid') ?? []]).map(({ __grid }) => __grid.lit)"""
PANEL = """(host, panel) => {
  const { boxes, ratio } = host.__grid;
  const { left, top } = host.getBoundingClientRect();
  const { x, y, width, height } = boxes[panel];
  return [left + (x + width / 2) / ratio, top + (y + height / 2) / ratio];
}"""


def test_words_that_name_a_head_light_it_up_in_the_grid_and_the_other_way_round(page: Page, address: str):
    """That in focus is named in the title, in its own sentence and in the caption; others where they are compared."""
    page.goto(f"{address}/heads?run=reverse")
    wait_until_painted(page, plots=3)
    page.wait_for_function(MEASURED)  # from now on nothing moves away under the pointer
    wait_for("named heads", lambda: page.evaluate(FOUND), lambda found: found.count("0.2") >= 3)
    page.mouse.move(*page.evaluate(MIDDLE))
    wait_for("a lit head", lambda: page.evaluate(GRID), lambda found: "0.2" in found)
    assert {words[-3:] for words in page.evaluate(LIT)} == {"0.2"}
    page.mouse.move(2, 2)
    wait_for("no lit head", lambda: page.evaluate(GRID), lambda found: {*found} == {None})
    assert page.evaluate(LIT) == []
    picture = page.locator(".grid").first
    for panel, named in ((2, "0.2"), (5, "1.1")):
        page.mouse.move(*picture.evaluate(PANEL, panel))
        wait_for(
            "the words of a head",
            lambda: {words[-3:] for words in page.evaluate(LIT)},
            lambda found, named=named: found == {named} or (named == "1.1" and not found),
        )
