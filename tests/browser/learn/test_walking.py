"""Square corners, in a real browser: crosses that move while it trains, and walks that are chosen by a click."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.kit.driving import click_at, plot, see_title_at_last, title


def said(page: Page) -> list[float]:
    """Where the crosses of the large walk stand now, x and y, on the screen: while they fly, somewhere between."""
    return page.evaluate(
        """() => [...document.querySelectorAll('.st-key-corners-plane .scatterlayer .trace:last-child .points path')]
          .flatMap((cross) => { const box = cross.getBoundingClientRect(); return [box.x, box.y]; })"""
    )


def test_figures_stay_in_place_corners_fly_to_their_places_and_a_click_chooses_a_walk(page: Page, address: str) -> None:
    """What is trained anew is drawn into the figures that are there: new ones would begin empty, above the old."""
    page.goto(f"{address}/corners")
    see_title_at_last(page, "After 400 steps")
    plot(page, "corners-plane").evaluate("host => { host.isOld = true; }")
    page.evaluate(
        """() => {
          window.mostPlanes = 0;
          const count = () => document.querySelectorAll('.st-key-corners-plane .al-plot').length;
          const look = () => { window.mostPlanes = Math.max(window.mostPlanes, count()); };
          new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
        }"""
    )
    page.get_by_role("slider", name="Noise").focus()
    page.keyboard.press("ArrowRight")
    expect(title(page)).to_contain_text("noise alone makes 0.21")
    see_title_at_last(page, "After 400 steps")
    assert page.evaluate("window.mostPlanes") == 1
    assert plot(page, "corners-plane").evaluate("host => host.isOld")

    train = page.get_by_role("button", name="Train and watch")
    expect(train).to_be_enabled()
    see_title_at_last(page, "After 400 steps")
    crosses = page.locator(".st-key-corners-plane .scatterlayer .trace:last-child .points path")
    expect(crosses).to_have_count(3)  # the title may be there before them; they begin at the last given corner
    before = said(page)
    train.click()
    stop = page.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_visible()
    expect(title(page)).not_to_contain_text("After 400 steps")
    page.wait_for_function(
        """(before) => {
          const now = document.querySelectorAll('.st-key-corners-plane .scatterlayer .trace:last-child .points path');
          if (!now.length) return false;  // they are just being drawn
          const box = now[now.length - 1].getBoundingClientRect();
          return Math.hypot(box.x - before[before.length - 2], box.y - before[before.length - 1]) > 20;
        }""",
        arg=before,
    )
    stop.click()
    expect(train).to_be_visible()
    click_at(
        plot(page, "corners-walks"),
        """(host) => {
          const stage = host.querySelector('.js-plotly-plot'), { xaxis7, yaxis7 } = stage._fullLayout;
          const { left, top } = stage.getBoundingClientRect(), { x, y } = stage._fullData[18];
          return [left + xaxis7._offset + xaxis7.c2p(x[0]), top + yaxis7._offset + yaxis7.c2p(y[0])];
        }""",
    )
    page.wait_for_url("**corner_walk=upper+right**anticlockwise*")
