"""Every page in both themes, and on a phone, as axe-core sees it. Streamlit's own widgets pass as well."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from dashboard import theme
from tests.kit.driving import PAGES, SETTLED, fits_a_phone, go_to, grid, title, violations, wait_until_painted

Scheme = Literal["light", "dark"]
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


def inks(scheme: Scheme) -> list[str]:
    """The colours of words of a palette, as a browser gives them back."""
    palette = theme.palette(scheme == "dark")
    rgb = [bytes.fromhex(colour.lstrip("#")) for colour in (palette.text, palette.muted)]
    return [f"rgb({red}, {green}, {blue})" for red, green, blue in rgb]


@pytest.mark.parametrize("half", [0, 1])
def test_every_page_is_accessible_in_both_themes_and_fits_a_projector_and_a_phone(half: int, page: Page, address: str):
    """Light on a desk, dark on a projector, and on a phone by turns: a walk through all pages, in two halves."""
    looks: list[tuple[Scheme, int, int]] = [("light", 1440, 900), ("dark", 1024, 768)]
    page.goto(address)
    pages = list(PAGES.items())
    for name, plots in pages[: len(pages) // 2] if half == 0 else pages[len(pages) // 2 :]:
        if name != "Overview":  # which one is on
            go_to(page, name)
            page.mouse.move(0, 0)  # what is pointed at has colours of Streamlit's own
        for scheme, width, height in looks:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_function(GROUND, arg=scheme)
            page.wait_for_function(REDRAWN, arg=inks("light" if scheme == "dark" else "dark"))
            wait_until_painted(page, plots)
            if name == "Square corners":  # its lesson is trained first, and its slider is pale until then
                expect(title(page)).to_contain_text("After 400 steps")
            expect(title(page)).to_be_in_viewport()
            assert violations(page) == [], (name, scheme)
            assert page.get_by_test_id("stMain").evaluate("main => main.scrollWidth - main.clientWidth") <= 0, name
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
        fits_a_phone(page)
        page.set_viewport_size({"width": width, "height": height})
        looks.reverse()  # the next page is entered the way this one was left


@pytest.mark.parametrize("view", ["reading", "writing"])
def test_a_text_fits_a_phone(view: str, page: Page, address: str):
    page.goto(f"{address}/{view}?run=shakespeare")
    expect(title(page)).to_be_visible()
    fits_a_phone(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_stop_of_the_tab_key_skips_to_the_page(scheme: Scheme, page: Page, address: str):
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{address}/heads?run=reverse")
    wait_until_painted(page, PAGES["Attention heads"])
    before = page.url
    link = page.get_by_role("link", name="Skip to main content")  # Streamlit's own
    expect(link).not_to_be_in_viewport()
    page.keyboard.press("Tab")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport(ratio=1)
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


def test_a_theme_that_changes_while_a_page_is_opened_is_followed(page: Page, address: str):
    """The page is drawn for the old theme then; the browser knows the new one when its pictures first appear."""
    page.emulate_media(color_scheme="dark")
    page.goto(address)
    wait_until_painted(page, PAGES["Overview"])
    go_to(page, "Inside a head")
    page.emulate_media(color_scheme="light")
    page.wait_for_function(GROUND, arg="light")
    wait_until_painted(page, PAGES["Inside a head"])
    page.wait_for_function(REDRAWN, arg=inks("dark"))
    page.wait_for_function(SETTLED)
