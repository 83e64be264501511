"""The end of a training in a real browser: its time at once, its pictures once more in place, and one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from dashboard.frame.live import FILM
from tests.kit.driving import MEASURED, wait_until_painted
from tests.kit.waiting import wait_for
from transformer.training.runs import Run

SCREENS = {1440: {"width": 1440, "height": 900}, 390: {"width": 390, "height": 844}}
PLOTS = {"": 3, "heads": 3}
"""Figures on the first page, and on the page of all heads."""
MOST = {1440: 0.05, 390: 0.1}
"""How much of a page may move: the sum of its layout shifts above the strip of the training. On a phone it is 0.006;
on a busy machine 0.057 was seen, and why is not known yet."""
STRIP, LINE = 0.42, 64
"""The most of the window that the strip takes (frame/style.css), and the pixels of the line below it."""
SHIFTS = """() => {
  window.shifts = [];
  const note = (list) => window.shifts.push(...list.getEntries());
  new PerformanceObserver(note).observe({ type: 'layout-shift' });
}"""
MOVED = """() => {
  const edges = ({ x, y, width, height }) => [x, y, width, height].map(Math.round);
  const from = ({ node, previousRect, currentRect }) => [node?.className, edges(previousRect), edges(currentRect)];
  return window.shifts.map(({ value, sources, startTime }) => [value, Math.round(startTime), sources.map(from)]);
}"""
HEADS = """() => {
  const roots = [...document.querySelectorAll('*')].map(({ shadowRoot }) => shadowRoot);
  const { panels } = roots.map((root) => root?.querySelector('.grid')?.__grid).find(Boolean);
  return panels.map(({ values }) => [...values].map((value) => (values instanceof Float32Array ? 255 * value : value)));
}"""
"""What the grid of heads shows, in steps of 1/255."""
PICTURE = (
    """() => document.querySelector('.al-plot .hm image').getAttributeNS('http://www.w3.org/1999/xlink', 'href')"""
)
"""The cells of the large head."""


def moved_above(found: list[Any], height: int) -> float:
    """The sum of the layout shifts in which something moved that does not lie in the strip, or behind it."""
    edge = (1 - STRIP) * height - LINE
    seen = [
        value
        for value, _, sources in found
        if not sources or any(y < edge for _, *rects in sources for _, y, width, tall in rects if width * tall)
    ]
    return float(sum(seen))


def line(page: Page) -> Locator:
    return page.locator(".st-key-training p").first


def replay(page: Page) -> Locator:
    return page.locator(".st-key-training-pictures-replay .film[data-state=ready]")


def train(page: Page, address: str, place: str, seed: int) -> None:
    """Open a page, note from now on what moves on it, and press Train."""
    page.goto(f"{address}/{place}?run=reverse&seed={seed}")
    wait_until_painted(page, PLOTS[place])
    if page.viewport_size == SCREENS[390]:
        page.get_by_test_id("stExpandSidebarButton").click()
        page.wait_for_function(
            "() => document.querySelector('[data-testid=stSidebar]').getBoundingClientRect().left === 0"
        )
    page.wait_for_function(f"() => ({MEASURED})() && !document.querySelector('.al-news[data-awaits]')")
    page.evaluate(SHIFTS)
    page.get_by_test_id("stSidebar").get_by_test_id("stBaseButton-primary").click()


def run_once_solved(page: Page, runs: Path) -> Run:
    """The run, once its line says how it ended."""
    expect(line(page)).to_contain_text("solved at step")
    expect(page.locator(".st-key-training-end")).to_be_visible()
    (name,) = re.findall(r"(\S+): solved at step", line(page).text_content() or "")  # an icon before it may come later
    return Run(runs / name)


@pytest.mark.parametrize("width", SCREENS)
@pytest.mark.parametrize("place", PLOTS)
def test_its_time_comes_first_then_the_page_s_own_pictures_learn_once_a_key_ends_that_and_nothing_moves(
    place: str, width: int, new_page: Callable[..., Page], address: str, runs: Path
) -> None:
    page = new_page(viewport=SCREENS[width])
    train(page, address, place, seed=len(place) + width)
    run = run_once_solved(page, runs)
    assert f"{run.state.reason}." in (line(page).text_content() or "")
    again = page.locator(".st-key-training-again").get_by_role("button")
    if run.metrics()[-1]["seconds"] >= FILM:  # the machine is busy: who waited so long has seen it
        again.click()
    expect(replay(page)).to_be_visible()
    last = run.state.step
    expect(replay(page).locator(".replay")).to_contain_text(f"of {last}. Any key or click ends it.")
    wait_for("it plays", lambda: int(replay(page).get_attribute("data-step") or 0), lambda step: 1 <= step < last)
    early, picture = page.evaluate(HEADS), page.evaluate(PICTURE)
    page.keyboard.press("Shift")
    expect(replay(page)).to_have_count(0)
    film = run.film
    assert film is not None
    (site,) = (each for each in [*film.readings][:1])
    levels = film.readings[site].levels
    shown: list[Any] = page.evaluate(HEADS)
    own = levels[-1, 0].reshape(-1)
    assert max(abs(float(one) - two) for one, two in zip(own, shown[0], strict=True) if two == two) <= 1
    assert early != shown, "the grid of the page played, and shows its own again"
    assert page.evaluate(PICTURE) != picture
    moved = page.evaluate(MOVED)
    assert moved_above(moved, SCREENS[width]["height"]) <= MOST[width], moved
    middles = []
    for part in ("p >> nth=0", ".st-key-training-again", "[data-testid=stPageLink]", ".st-key-put-away"):
        each = page.locator(".st-key-training-end").locator(part)
        expect(each).to_be_visible()
        box = each.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        middles.append(box["y"] + box["height"] / 2)
    assert max(middles) - min(middles) < 12, "one line"
    again.click()
    expect(replay(page)).to_be_visible()
    page.mouse.click(width / 2, 300)
    expect(replay(page)).to_have_count(0)


def test_who_wants_less_motion_gets_the_line_alone(new_page: Callable[..., Page], address: str, runs: Path) -> None:
    page = new_page(viewport=SCREENS[1440], reduced_motion="reduce")
    train(page, address, "heads", seed=77)
    run = run_once_solved(page, runs)
    wait_for("its film", lambda: (run.folder / "film.npz").exists(), bool)
    expect(page.locator(".st-key-training-end [data-testid=stPageLink]")).to_be_visible()
    expect(page.locator(".st-key-training-pictures-replay")).to_be_hidden()
    expect(page.locator(".st-key-training-again")).to_be_hidden()
