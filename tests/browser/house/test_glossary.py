"""Terms are explained where they stand: by pointer, by touch, and in a list by keyboard."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from dashboard.frame.glossary import TERMS
from tests.kit.driving import PATIENCE, click_at, point_at
from tests.kit.waiting import wait_for

MEANINGS = {term.name: term.meaning for term in TERMS}
FOUND = "host => host.__glossary.found.map(({ name, range }) => [name, String(range)])"
MARKED = "() => [...CSS.highlights.get('al-terms') ?? []].map(String)"
MIDDLE = """(host, name) => {
  const { range } = host.__glossary.found.find((each) => each.name === name);
  range.startContainer.parentElement.scrollIntoView({ block: 'center' });
  const { left, top, width, height } = range.getClientRects()[0];
  return [left + width / 2, top + height / 2];
}"""


def test_a_term_is_explained_where_it_stands_first_and_the_words_of_a_page_are_listed_by_keyboard(
    page: Page, address: str
):
    page.goto(f"{address}/heads?run=reverse")
    button = page.get_by_role("button", name="Words", exact=True)
    expect(button).to_be_visible(timeout=PATIENCE)
    terms, card = page.locator(".al-glossary"), page.locator(".al-meaning")
    found = wait_for("the terms", lambda: dict(terms.evaluate(FOUND)), lambda found: "residual stream" in found)
    assert found["query"] == "query"
    assert sorted(page.evaluate(MARKED)) == sorted(found.values())
    point_at(terms, MIDDLE, "residual stream")
    expect(card).to_have_text(f"residual stream: {MEANINGS['residual stream']}.")
    page.mouse.move(5, 5)
    expect(card).to_be_hidden()
    click_at(terms, MIDDLE, "query")
    expect(card).to_contain_text(MEANINGS["query"])
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    button.press("Enter")
    listed = page.get_by_role("dialog", name="Words on this page")
    expect(listed).to_be_visible()
    found = dict(terms.evaluate(FOUND))
    assert listed.locator("dt").all_inner_texts() == sorted(found, key=str.lower)
    for name in found:
        expect(listed).to_contain_text(MEANINGS[name])
    page.keyboard.press("Escape")
    expect(listed).to_be_hidden()
