"""The head in focus in a real browser: every picture answers the pointer, a lock is seen and undone, zoom is kept."""

from __future__ import annotations

import re
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from tests.kit.driving import SCRIPTS, cell_of, click_head, grid, head_in_focus, query, wait_until_painted
from transformer import checkpoints
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.model import build
from transformer.training.runs import Run


@pytest.fixture
def long(runs: Path) -> Iterator[str]:
    """An untrained model of inputs so long that a head is shown in a window."""
    config = RunConfig(task=TaskConfig(length=100), model=ModelConfig(n_layers=1, n_heads=2, d_model=16))
    run = Run.create(runs / "long", config)
    torch.manual_seed(0)
    snapshot = run.folder / "snapshots" / "step-000000.safetensors"
    snapshot.parent.mkdir(exist_ok=True)
    checkpoints.save(snapshot, build(config), config)
    run.set_state("finished", 0, "Made for a test.")
    yield "long"
    shutil.rmtree(run.folder)


def open_heads(page: Page, address: str, view: str = "run=reverse") -> None:
    page.goto(f"{address}/heads?{view}")
    head_in_focus(page).wait_for()
    wait_until_painted(page, plots=3)


def sentence(page: Page) -> Locator:
    return page.locator(".st-key-head-pattern .al-plot-sentence")


def test_keys_and_pointing_are_answered_by_every_picture_and_a_locked_query_is_in_the_link(page: Page, address: str):
    open_heads(page, address)
    head = head_in_focus(page)
    page.mouse.move(5, 5)
    head.press("ArrowDown")  # begins with the first query
    expect(sentence(page)).to_have_text(re.compile(r"^Output '.' at 1 reads key '3' at 1: "))
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowLeft"):
        head.press(key)
    expect(sentence(page)).to_have_text(re.compile(r"^Output '.' at 3 reads key '3' at 1: "))
    head.press("Enter")
    expect(page).to_have_url(query(run="reverse", query="3"))
    head.press("Escape")
    expect(page).not_to_have_url(re.compile("query="))

    said = r"^Output '6' at 9 reads key '6' at 8: "
    whole = re.compile(said + r"pattern (1\.00|0\.9\d) · contribution \d+\.\d\d$")
    for matrix in ("pattern", "contribution"):
        page.mouse.move(*cell_of(head, 8, 7, matrix))
        expect(sentence(page)).to_have_text(whole)
        page.mouse.move(*cell_of(head, 2, 5, matrix))
        expect(sentence(page)).to_have_text("Output '1' at 3 may not see key '9' at 6")
    small = page.locator(".st-key-heads .sentence")
    expect(small).to_have_text(re.compile(r"^Head \d\.\d: query '4' at 3 may not see"))
    page.mouse.move(*cell_of(head, 8, 7))
    expect(small).to_have_text(re.compile(r"^Head \d\.\d: query 'SEP' at 9 reads"))
    label = head.locator(".hoverlayer .hovertext")
    expect(label).to_have_text(re.compile(r"^pattern: (1\.00|0\.9\d)$"))
    page.mouse.move(*cell_of(head, 8, None))  # a token of the arcs: what it looks at most
    expect(sentence(page)).to_have_text(whole)
    page.mouse.move(*cell_of(head, None, 7))
    expect(sentence(page)).to_have_text(whole)
    page.mouse.move(5, 5)
    expect(sentence(page)).to_be_empty()
    grid(page).hover(position={"x": 40, "y": 60})
    expect(small).to_have_text(re.compile("^Head 0.0: query"))
    expect(sentence(page)).to_have_text(re.compile("^Output '.*' at .* key '.*' at"))
    expect(head.locator(".al-plot-crosshair > div:not([hidden])").first).to_be_visible()

    lock = page.locator(".st-key-head-pattern .al-plot-lock")
    expect(lock).to_be_hidden()
    page.mouse.click(*cell_of(head, 8, None))
    expect(lock).to_have_text("Locked: query 'SEP' at 9 · unlock (Esc)")
    expect(page).to_have_url(query(run="reverse", query="9"))
    page.reload()
    head.wait_for()
    expect(lock).to_have_text("Locked: query 'SEP' at 9 · unlock (Esc)")
    lock.click()
    expect(lock).to_be_hidden()
    expect(page).not_to_have_url(re.compile("query="))
    page.mouse.click(*cell_of(head, 10, 3, "contribution"))
    expect(page).to_have_url(query(run="reverse", query="11"))
    head.press("Escape")
    expect(lock).to_be_hidden()
    expect(page).not_to_have_url(re.compile("query="))
    page.mouse.click(*cell_of(head, None, 0))  # a key: it is locked here only
    expect(lock).to_have_text("Locked: key '3' at 1 · unlock (Esc)")
    expect(page).not_to_have_url(re.compile("query="))


def test_of_a_text_a_word_shows_what_it_reads_and_no_sentence_loses_its_number(page: Page, address: str):
    page.set_viewport_size({"width": 1024, "height": 768})
    open_heads(page, address, "run=shakespeare")
    passage = page.locator(".st-key-heads-passage .passage")
    first = int(re.search(r"Here '.+' at (\d+) looks", page.get_by_text("looks most at").inner_text())[1])
    passage.press("ArrowLeft")
    expect(page).to_have_url(query(run="shakespeare", query=str(first - 1)))
    said = re.compile(rf"Here '.+' at {first - 1} looks most at '.+' at \d+ \([01]\.\d+\)")
    expect(page.get_by_text(said)).to_be_in_viewport()
    line = page.locator(".st-key-heads .sentence")
    for place in ({"x": 20, "y": 80}, {"x": 40, "y": 85}, {"x": 45, "y": 90}):
        grid(page).hover(position=place)
        expect(line).to_have_text(re.compile(r"(reads key '.+' at \d+: \d\.\d\d|may not see key '.+' at \d+)$"))
        assert line.evaluate("line => line.scrollWidth <= line.clientWidth && line.scrollHeight <= line.clientHeight")


def test_the_head_follows_the_grid_in_place_its_matrices_zoom_together_and_a_frame_is_drawn_once(
    page: Page, address: str
):
    open_heads(page, address)
    head = head_in_focus(page)
    head.evaluate("host => (host.querySelector('.main-svg').mine = true)")
    panels = grid(page).evaluate("host => { host.__grid.data.mine = true; return host.__grid.panels.length; }")
    for number in (5, 2, panels - 1):
        click_head(page, number)
        expect(head).to_have_attribute("data-head", f"decoder.{number // 4}.self_attention.{number % 4}")
        expect(grid(page)).to_have_attribute("data-focus", str(number))
    assert head.evaluate("host => host.querySelector('.main-svg').mine"), "no node is made anew"
    assert grid(page).evaluate("host => host.__grid.data.mine"), "and the grid is not sent again"

    shown = """host => ['xaxis', 'xaxis2', 'yaxis', 'yaxis2'].map(
      (name) => host.querySelector('.js-plotly-plot')._fullLayout[name].range.map(Math.round))"""
    assert head.evaluate(shown) == [[1, 17], [1, 17], [17, 1], [17, 1]]  # half a cell more at each end
    page.mouse.move(*cell_of(head, 2, 2))
    page.mouse.down()
    page.mouse.move(*cell_of(head, 8, 8), steps=4)
    page.mouse.up()
    page.mouse.move(5, 5)
    assert head.evaluate(shown) == [[3, 9], [3, 9], [9, 3], [9, 3]]
    click_head(page, 5)
    expect(head).to_have_attribute("data-head", "decoder.1.self_attention.1")
    assert head.evaluate(shown)[0] == [3, 9], "zoom is kept when another head comes"
    expect(page).not_to_have_url(re.compile("query="))
    head.hover()
    page.locator(".st-key-head-pattern .modebar-btn[data-title^='Reset zoom']").click()
    assert head.evaluate(shown)[0] == [1, 17]

    frames = head.evaluate(
        """async (host) => {
          const one = host.__plot, stage = one.stage, { left, top, width } = stage.getBoundingClientRect();
          const next = () => new Promise(requestAnimationFrame);
          const drawn = [];
          for (let i = 0; i < 20; i++) {
            await next();
            const before = one.frames;
            for (let k = 0; k < 10; k++) {
              const place = { clientX: left + ((i * 10 + k) / 200) * width, clientY: top + 60 + i * 10 };
              stage.dispatchEvent(new PointerEvent('pointermove', place));
            }
            await next();
            drawn.push(one.frames - before);
          }
          return drawn;
        }"""
    )
    assert max(frames) == 1, "however many moves fall into a frame, it is drawn once"
    assert statistics.mean(frames) > 0.5


def test_a_click_in_the_whole_of_a_long_input_moves_the_window(page: Page, address: str, long: str):
    open_heads(page, address, f"run={long}")
    head = head_in_focus(page)
    for row, column, begins in ((150, 20, (118, 0)), (10, 100, (0, 68))):
        page.mouse.click(*cell_of(head, row, column, "whole"))
        expect(page).to_have_url(re.compile(r"window=\d+(,|%2C)\d+"))
        page.wait_for_function(
            """([host, row, column]) => {
              const { xaxis, yaxis } = host.querySelector('.js-plotly-plot')._fullLayout;
              return Math.abs(yaxis.range[1] - row) < 5 && Math.abs(xaxis.range[0] - column) < 5;
            }""",
            arg=[head.element_handle(), *begins],
        )
    wait_until_painted(page, plots=3)
    page.mouse.move(*cell_of(head, 150, 20, "whole"))
    expect(sentence(page)).to_have_text(re.compile("^Query at 1.., key at .*: outside the window; click in the whole"))


def test_labels_have_room_and_words_come_first(page: Page, address: str):
    """Of a text every other token is a blank: where not all can be named, words are; none touches its neighbour."""
    page.goto(f"{address}{SCRIPTS}/matrix/paint.js")
    labels = ["SEP", *("brother", " ") * 5, ",", ".", "!", " ", "4", " "]
    found = page.evaluate(
        """async ([script, labels]) => {
          const { named } = await import(script);
          return [1, 2, 3, 5, 40].map((every) => named(labels, 1, labels.length - 1, every));
        }""",
        [f"{address}{SCRIPTS}/matrix/paint.js", labels],
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
