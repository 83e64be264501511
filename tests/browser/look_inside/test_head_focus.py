"""The head in focus in a real browser: every view answers the pointer, a lock is seen and undone, nothing flickers."""

from __future__ import annotations

import re
import statistics

import pytest
from playwright.sync_api import Page, expect

from tests.kit.driving import cell_of, click_head, grid, head_in_focus, query, wait_until_painted


def open_heads(page: Page, address: str, view: str = "run=reverse") -> None:
    page.goto(f"{address}/heads?{view}")
    head_in_focus(page).wait_for()
    head_in_focus(page, "contribution").wait_for()
    wait_until_painted(page, plots=2)


@pytest.mark.smoke
def test_pointing_at_a_cell_is_answered_by_every_view(page: Page, address: str):
    open_heads(page, address)
    pattern, contribution = (page.locator(f".st-key-head-{name} .sentence") for name in ("pattern", "contribution"))
    page.mouse.move(*cell_of(head_in_focus(page), 8, 7))
    said = r"^Output '6' at 9 \(reading 'SEP'\) reads key '6' at 8: "
    expect(pattern).to_have_text(re.compile(said + r"pattern (1\.00|0\.9\d)$"))
    expect(contribution).to_have_text(re.compile(said + r"contribution \d+\.\d\d$"))
    expect(page.locator(".st-key-heads .sentence")).to_have_text(re.compile(r"^Head \d\.\d: query 'SEP' at 9 reads"))
    page.mouse.move(*cell_of(head_in_focus(page), 2, 5))
    expect(contribution).to_have_text(re.compile("may not see key '9' at 6$"))
    page.mouse.move(*cell_of(head_in_focus(page), 8, None, "arcs"))  # a token: what it looks at most
    expect(pattern).to_have_text(re.compile(said))
    page.mouse.move(*cell_of(head_in_focus(page), None, 7, "arcs"))
    expect(pattern).to_have_text(re.compile(said))
    page.mouse.move(5, 5)
    expect(pattern).to_be_empty()
    expect(contribution).to_be_empty()


def test_a_locked_query_is_seen_in_the_link_and_unlocked(page: Page, address: str):
    open_heads(page, address)
    lock = page.locator(".st-key-head-pattern .lock")
    expect(lock).to_be_hidden()
    page.mouse.click(*cell_of(head_in_focus(page), 8, None, "arcs"))
    expect(lock).to_have_text("Locked: query 'SEP' at 9 · unlock (Esc)")
    expect(page).to_have_url(query(run="reverse", query="9"))
    page.reload()
    head_in_focus(page).wait_for()
    expect(lock).to_have_text("Locked: query 'SEP' at 9 · unlock (Esc)")
    lock.click()
    expect(lock).to_be_hidden()
    expect(page).not_to_have_url(re.compile("query="))
    head_in_focus(page).press("ArrowDown")
    head_in_focus(page).press("Enter")
    expect(lock).to_be_visible()
    expect(page).to_have_url(re.compile(r"query=\d"))
    head_in_focus(page).press("Escape")
    expect(lock).to_be_hidden()
    page.mouse.click(*cell_of(head_in_focus(page), None, 0, "arcs"))  # a key: it is locked here only
    expect(lock).to_have_text("Locked: key '3' at 1 · unlock (Esc)")
    expect(page).not_to_have_url(re.compile("query="))


def test_the_head_follows_the_grid_in_place(page: Page, address: str):
    """No node is made anew, the grid is not sent again, and the canvas is never blank."""
    open_heads(page, address)
    focus = head_in_focus(page)
    focus.evaluate("host => (host.mine = true)")
    panels = grid(page).evaluate("host => { host.__grid.data.mine = true; return host.__grid.panels.length; }")
    for number in (5, 2, panels - 1):
        click_head(page, number)
        expect(focus).to_have_attribute("data-head", f"decoder.{number // 4}.self_attention.{number % 4}")
        expect(grid(page)).to_have_attribute("data-focus", str(number))
    assert focus.evaluate("host => host.mine")
    assert grid(page).evaluate("host => host.__grid.data.mine")


def test_following_the_pointer_takes_a_small_part_of_a_frame(page: Page, address: str):
    """A law of work, not of time: however many moves fall into a frame, it is drawn once."""
    open_heads(page, address)
    focus = head_in_focus(page)
    frames = focus.evaluate(
        """async (host) => {
          const one = host.__focus, { left, top, width } = host.getBoundingClientRect();
          const next = () => new Promise(requestAnimationFrame);
          const drawn = [];
          for (let i = 0; i < 20; i++) {
            await next();
            const before = one.frames;
            for (let k = 0; k < 10; k++) {
              const place = { clientX: left + ((i * 10 + k) / 200) * width, clientY: top + 60 + i * 10 };
              host.dispatchEvent(new PointerEvent('pointermove', place));
            }
            await next();
            drawn.push(one.frames - before);
          }
          return drawn;
        }"""
    )
    assert max(frames) == 1
    assert statistics.mean(frames) > 0.5


def test_labels_have_room_and_words_come_first(page: Page, address: str):
    """Of a text every other token is a blank: where not all can be named, words are; none touches its neighbour."""
    open_heads(page, address)
    labels = ["SEP", *("brother", " ") * 5, ",", ".", "!", " ", "4", " "]
    near = next(
        each
        for each in page.evaluate("performance.getEntriesByType('resource').map((e) => e.name)")
        if "matrix/paint.js" in each
    )
    found = page.evaluate(
        """async ([near, labels]) => {
          const { named } = await import(near);
          return [1, 2, 3, 5, 40].map((every) => named(labels, 1, labels.length - 1, every));
        }""",
        [near, labels],
    )
    rest = labels[1:]
    assert found[0] == list(range(len(rest)))
    for every, places in zip((2, 3, 5, 40), found[1:], strict=True):
        gaps = [one - other for one, other in zip(places[1:], places, strict=False)]
        assert all(gap >= every for gap in gaps), "each has the room it needs"
        assert all(gap < 2 * every for gap in gaps), "and no room is left in which another would have stood"
        begin = [0, *(place + every for place in places[:-1])]
        for first, place in zip(begin, places, strict=True):
            nearest = [i for i in range(first, min(first + every, len(rest))) if rest[i].isalnum()]
            assert place == (nearest[0] if nearest else first)
