"""A head that is chosen in the grid stands large at once: its own pattern, and nothing of the head before beside it.

Python's answer is held back here, for it is what these tests are about: what stands before it comes, and after.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from playwright.sync_api import Locator, Page, WebSocketRoute, expect

from dashboard.theme import pattern_colours
from tests.kit.driving import (
    SCRIPTS,
    cell_of,
    click_head,
    grid,
    head_in_focus,
    query,
    two_frames,
    wait_until_painted,
)

HEADS = [f"decoder.{layer}.self_attention.{head}" for layer in range(2) for head in range(4)]
PIXELS = """async (host) => {
  const stage = host.querySelector('.js-plotly-plot');
  const heatmap = [...stage.querySelectorAll('.hm')].find((each) => each.__data__[0].trace.meta?.view === 'pattern');
  const image = new Image();
  image.src = heatmap.querySelector('image').href.baseVal;
  await image.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [image.width, image.height];
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  return [canvas.height, canvas.width, [...context.getImageData(0, 0, canvas.width, canvas.height).data]];
}"""
"""The picture that stands for the cells of the pattern: rows, columns, and red, green, blue and opacity of each."""
NUMBERS = """(host) => host.querySelector('.js-plotly-plot').calcdata.map(([first]) => first)
  .filter(({ trace }) => trace.meta?.view)
  .map(({ trace, z }) => [trace.meta.view, z.map((row) => row.map((value) => value ?? null))])"""
"""The numbers of each matrix of the figure, by its name; null where nothing may be seen."""
NOTED = """(host) => {
  window.noted = [];
  const note = () => window.noted.push(host.dataset.head);
  new MutationObserver(note).observe(host, { attributeFilter: ['data-head'] });
}"""
UNHEARD = """async (host, script) => {
  const { hand } = await import(script);
  const places = [...document.querySelectorAll('.st-key-heads *')].filter((each) => each.shadowRoot);
  const grid = places[0].shadowRoot.querySelector('.grid');
  hand('pattern', grid.__grid.data, 5, grid.__grid);
  return host.dataset.preview;
}"""
"""What a click on the sixth head does, but Python hears of none."""


class Server:
    """What Python sends to a page, which can be held back."""

    def __init__(self, page: Page) -> None:
        self.held: list[Callable[[], None]] | None = None
        page.route_web_socket("**/_stcore/stream*", self._connect)

    def _connect(self, browser: WebSocketRoute) -> None:
        server = browser.connect_to_server()

        def pass_on(message: str | bytes) -> None:
            if self.held is None:
                browser.send(message)
            else:
                self.held.append(lambda: browser.send(message))

        server.on_message(pass_on)

    def hold(self) -> None:
        self.held = []

    def release(self) -> None:
        held, self.held = self.held or [], None
        for send in held:
            send()


def open_heads(page: Page, address: str, view: str = "run=reverse") -> Locator:
    page.goto(f"{address}/heads?{view}")
    head = head_in_focus(page)
    head.wait_for()
    wait_until_painted(page, plots=3)
    return head


def painted(head: Locator) -> np.ndarray:
    """The picture of the pattern's cells: float [row, column, 4], red, green, blue and opacity from 0 to 255."""
    rows, columns, values = head.evaluate(PIXELS)
    return np.array(values, dtype=float).reshape(rows, columns, 4)


def numbers(head: Locator) -> dict[str, np.ndarray]:
    """Float [query, key] of each matrix; nan where nothing may be seen."""
    return {view: np.array(z, dtype=float) for view, z in head.evaluate(NUMBERS)}


def in_colours(pattern: np.ndarray) -> np.ndarray:
    """A pattern as a picture on the scale of patterns; without colour and opacity where nothing may be seen."""
    seen = np.isfinite(pattern)
    colours = pattern_colours(False).reshape(256, 3)[np.rint(255 * np.where(seen, pattern, 0)).astype(int)]
    return np.concatenate([colours, np.full((*pattern.shape, 1), 255)], axis=-1) * seen[..., None]


def whole(head: Locator) -> dict[str, Any]:
    """All that a figure shows."""
    shown: dict[str, Any] = head.evaluate(
        """(host) => {
          const { layout } = host.querySelector('.js-plotly-plot');
          const texts = [...host.querySelectorAll('text')].map((each) => each.textContent);
          const { ariaLabel, dataset } = host;
          return JSON.parse(JSON.stringify({ shapes: layout.shapes, texts, ariaLabel, head: dataset.head }));
        }"""
    )
    return shown


def test_its_own_pattern_stands_before_python_answers_and_then_all_of_it(page: Page, address: str):
    server = Server(page)
    head = open_heads(page, address)
    before = numbers(head)["pattern"]
    number = 5 if head.get_attribute("data-head") != HEADS[5] else 6
    page.mouse.move(*cell_of(head, 8, 7))
    sentence = page.locator(".st-key-head-pattern .al-plot-sentence")
    expect(sentence).not_to_be_empty()
    said = sentence.inner_text()
    server.hold()
    click_head(page, number)
    expect(head).to_have_attribute("data-preview", str(number))
    preview = painted(head)
    assert head.get_attribute("data-head") != HEADS[number], "the rest is not of this head yet"
    expect(head).to_have_attribute("aria-busy", "true")
    expect(head).to_have_attribute("aria-label", re.compile(rf"^Head {number // 4}\.{number % 4}\."))
    pale = [sentence, page.locator(".st-key-of-head-title"), page.locator(".st-key-of-head-explained")]
    for each in pale:
        expect(each).to_have_css("opacity", "0.3")
    page.mouse.move(5, 5)
    page.mouse.move(*cell_of(head, 8, 7))
    two_frames(page)
    now = sentence.inner_text()
    assert now in (said, "") or not re.search(r"\d\.\d\d", now), "no number of the head before is said of this one"
    page.mouse.move(5, 5)

    server.release()
    expect(head).to_have_attribute("data-head", HEADS[number])
    expect(head).not_to_have_attribute("data-preview", re.compile("."))
    expect(head).not_to_have_attribute("aria-busy", re.compile("."))
    own = numbers(head)["pattern"]
    assert np.nanmax(np.abs(own - before)) > 0.1, "it is another head"
    np.testing.assert_array_equal(preview, in_colours(own))
    np.testing.assert_allclose(painted(head), in_colours(own), atol=3)  # Plotly's own colours lie between ours
    for each in pale[1:]:
        expect(each).to_have_css("opacity", "1")

    came = numbers(head), whole(head)
    wait_until_painted(page, plots=3)
    page.reload()
    head.wait_for()
    wait_until_painted(page, plots=3)
    again = numbers(head), whole(head)
    assert came[1] == again[1]
    assert came[0].keys() == again[0].keys()
    for view, values in again[0].items():
        np.testing.assert_array_equal(came[0][view], values)


def test_the_last_choice_stands_and_where_no_answer_comes_the_head_before(page: Page, address: str):
    server = Server(page)
    head = open_heads(page, address, "run=reverse&head=decoder.0.self_attention.0")
    before = painted(head)

    def the_head_before_stands() -> None:
        expect(head).not_to_have_attribute("data-preview", re.compile("."))
        np.testing.assert_array_equal(painted(head), before)
        expect(head).to_have_attribute("aria-label", re.compile(r"^Head 0\.0, pattern\."))
        expect(head).to_have_attribute("data-head", HEADS[0])

    assert head.evaluate(UNHEARD, f"{SCRIPTS}/kit/link.js") == "5"
    the_head_before_stands()

    server.hold()
    for number in (5, 0):  # and back at once
        click_head(page, number)
        if number:
            expect(head).to_have_attribute("data-preview", str(number))
    the_head_before_stands()
    server.release()
    wait_until_painted(page, plots=3)
    the_head_before_stands()

    head.evaluate(NOTED)
    server.hold()
    for number in (5, 2, 7):
        click_head(page, number)
        expect(head).to_have_attribute("data-preview", str(number))
    for key, number in (("ArrowLeft", 6), ("ArrowUp", 2), ("ArrowLeft", 1)):
        grid(page).press(key)
        expect(head).to_have_attribute("data-preview", str(number))
    preview = painted(head)
    server.release()
    expect(head).to_have_attribute("data-head", HEADS[1])
    wait_until_painted(page, plots=3)
    assert set(page.evaluate("window.noted")) == {HEADS[1]}, "no older answer is drawn"
    np.testing.assert_array_equal(preview, in_colours(numbers(head)["pattern"]))
    expect(grid(page)).to_have_attribute("data-focus", "1")


def test_what_the_grid_shows_otherwise_waits_for_python(page: Page, address: str):
    """A head of other tokens, and then one of the same tokens, but each row on a scale of its own."""
    server = Server(page)
    head = open_heads(page, address, "run=reverse-translate&head=encoder.0.self_attention.0")
    last = int(grid(page).get_attribute("data-panels") or 0) - 1

    def waits(number: int) -> None:
        before, stood = painted(head), str(head.get_attribute("data-head"))
        server.hold()
        click_head(page, number)
        expect(grid(page)).to_have_attribute("data-chosen", str(number))
        two_frames(page)
        assert head.get_attribute("data-preview") is None
        np.testing.assert_array_equal(painted(head), before)
        server.release()
        expect(head).not_to_have_attribute("data-head", stood)
        wait_until_painted(page, plots=3)

    waits(last)
    page.locator(".st-key-control-by_row label").click()
    expect(page).to_have_url(query(by_row="1"))
    wait_until_painted(page, plots=3)
    waits(last - 1)
