"""Every page in both themes, on a projector and on a phone, as axe-core sees it; Streamlit's own widgets pass, too."""

from __future__ import annotations

from itertools import cycle
from typing import Literal

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from dashboard import theme
from tests.kit.driving import (
    PAGES,
    SETTLED,
    fits_a_phone,
    go_to,
    grid,
    see_title_at_last,
    title,
    violations,
    wait_until_painted,
)

Scheme = Literal["light", "dark"]
PROJECTOR: ViewportSize = {"width": 1024, "height": 768}
GROUND = """scheme => {
  const ground = getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor;
  const [red, green, blue] = ground.match(/\\d+/g).map(Number);
  return (red + green + blue > 384) === (scheme === 'light');
}"""
REDRAWN = """colours => {
  const stale = (each) => each.checkVisibility() && colours.includes(getComputedStyle(each).color);
  const redrawn = (root) => [...root.querySelectorAll('*')].every(
    (each) => !stale(each) && (!each.shadowRoot || redrawn(each.shadowRoot)));
  return redrawn(document);
}"""
"""The ground changes at once, what Python coloured a rerun later: until then some words have the other theme's."""
STOPS = 8
"""Of the Tab key, from the beginning of a page to its first picture."""


def wait_until_redrawn(page: Page, scheme: Scheme) -> None:
    """Wait until nothing has a colour of the other theme's words."""
    palette = theme.palette(scheme == "light")
    rgb = [bytes.fromhex(colour.lstrip("#")) for colour in (palette.text, palette.muted)]
    page.wait_for_function(GROUND, arg=scheme)
    page.wait_for_function(REDRAWN, arg=[f"rgb({red}, {green}, {blue})" for red, green, blue in rgb])


@pytest.mark.parametrize("half", [0, 1])
def test_every_page_is_accessible_in_both_themes_and_fits_a_projector_and_a_phone(half: int, page: Page, address: str):
    """A walk through all pages, in two halves. Of two pages one is light on a projector and dark on a phone."""
    schemes: cycle[Scheme] = cycle(("light", "dark", "dark", "light"))
    page.set_viewport_size(PROJECTOR)
    page.goto(address)
    for name, plots in list(PAGES.items())[half * len(PAGES) // 2 : (half + 1) * len(PAGES) // 2]:
        if name != "Overview":  # which one is on
            go_to(page, name)
            page.mouse.move(0, 0)  # what is pointed at has colours of Streamlit's own
        scheme = next(schemes)
        page.emulate_media(color_scheme=scheme)
        wait_until_redrawn(page, scheme)
        wait_until_painted(page, plots)
        if name == "Square corners":  # its lesson is trained first, and its slider is pale until then
            see_title_at_last(page, "After 400 steps")
        expect(title(page)).to_be_in_viewport()
        assert violations(page) == [], (name, scheme)
        assert page.get_by_test_id("stMain").evaluate("main => main.scrollWidth - main.clientWidth") <= 0, name
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
        scheme = next(schemes)
        page.emulate_media(color_scheme=scheme)
        wait_until_redrawn(page, scheme)
        fits_a_phone(page)
        page.set_viewport_size(PROJECTOR)


def test_a_text_that_is_written_fits_a_phone(page: Page, address: str):
    page.goto(f"{address}/writing?run=shakespeare")
    expect(title(page)).to_be_visible()
    fits_a_phone(page)


def test_the_tab_key_skips_to_the_page_and_a_theme_that_changes_while_the_next_is_opened_is_followed(
    page: Page, address: str
):
    page.emulate_media(color_scheme="light")
    page.goto(f"{address}/heads?run=reverse")
    wait_until_painted(page, PAGES["Attention heads"])
    before = page.url
    link = page.get_by_role("link", name="Skip to main content")  # Streamlit's own
    expect(link).not_to_be_in_viewport()
    page.keyboard.press("Tab")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport(ratio=1)
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    wait_until_redrawn(page, "dark")
    assert violations(page) == []
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("stMain")).to_be_focused()
    assert page.url == before
    for _stop in range(STOPS):
        page.keyboard.press("Tab")
        if grid(page).evaluate("host => host.getRootNode().activeElement === host"):
            break
    else:
        raise AssertionError(f"the head grid is not among the first {STOPS} stops")
    go_to(page, "Inside a head")
    page.emulate_media(color_scheme="light")  # the page is drawn for the old theme; its pictures know the new one
    wait_until_painted(page, PAGES["Inside a head"])
    wait_until_redrawn(page, "light")
    page.wait_for_function(SETTLED)
