"""The dashboard as a person uses it, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.kit.driving import (
    PAGES,
    click_head,
    go_to,
    grid,
    out_strip,
    plot,
    point_at_cell,
    query,
    title,
    type_into,
    wait_until_painted,
)

INPUTS = ("3 1 4 1 5 9 2 6", "9 8 7 6 5 4 3 2", "1 2 3 4 5 6 7 8")
"""What the page begins with, and what is typed."""


def says(answer: str) -> re.Pattern[str]:
    """The words of an answer of which everything is right."""
    return re.compile(f"out: {', '.join(f'{symbol} right' for symbol in answer)}\\.$")


@pytest.mark.smoke
def test_it_opens_on_a_model_that_reverses(page: Page, address: str):
    page.goto(address)
    expect(title(page)).to_have_text("This transformer reads eight digits and writes them backwards.")
    expect(plot(page, "overview-pattern")).to_be_visible()
    expect(out_strip(page)).to_have_attribute("aria-label", re.compile("^in: 3, 1, 4, 1, 5, 9, 2, 6\\."))
    expect(out_strip(page)).to_have_attribute("aria-label", says("62951413"))
    wait_until_painted(page, plots=3)
    expect(grid(page)).to_have_attribute("data-panels", "8")
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text("Second half 1.00, first half 0.10 = chance: the mask holds.")).to_be_visible()
    expect(page).to_have_url(f"{address}/?run=reverse")
    expect(page.get_by_test_id("stSidebar")).not_to_have_attribute("data-collapsed", "true")


# Heads


def test_a_click_in_the_grid_enlarges_a_head_and_the_link_keeps_it(
    page: Page, new_page: Callable[..., Page], address: str
):
    page.goto(address)
    wait_until_painted(page, plots=3)
    heading = page.get_by_test_id("stMain").get_by_text(
        re.compile(r"^Head \d\.\d puts .* on the token it should output\.$")
    )
    focus = int(grid(page).get_attribute("data-focus") or "")
    expect(heading).to_contain_text(f"Head {focus // 4}.{focus % 4} puts")
    column = (focus + 1) % 3  # of the three first heads of a layer, another one
    click_head(page, 4 + column)
    expect(heading).to_contain_text(f"Head 1.{column} puts")
    expect(page).to_have_url(query(run="reverse", head=f"decoder.1.self_attention.{column}"))
    grid(page).press("ArrowUp")
    expect(heading).to_contain_text(f"Head 0.{column} puts")
    grid(page).press("ArrowRight")
    expect(heading).to_contain_text(f"Head 0.{column + 1} puts")
    expect(page).to_have_url(query(run="reverse", head=f"decoder.0.self_attention.{column + 1}"))
    sentence = heading.inner_text()
    other = new_page(locale="en-GB")  # a browser profile of its own
    other.goto(page.url)
    expect(other.get_by_text(sentence)).to_be_visible()
    expect(grid(other)).to_have_attribute("data-focus", str(column + 1))
    grid(other).press("ArrowLeft")
    expect(other.locator(".scroller ~ .foot .sentence").first).to_have_text(f"Head 0.{column}")


# Pages


def test_a_link_can_leave_the_sidebar_closed_and_a_click_looks_into_a_stage(page: Page, address: str):
    page.goto(f"{address}/layers?run=reverse&sidebar=0")
    wait_until_painted(page, plots=PAGES["Through the layers"])
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    expect(page).to_have_url(query(sidebar="0"))
    lens = plot(page, "lens")
    point_at_cell(lens, row=3, column=11)
    expect(lens.locator(".hoverlayer .hovertext")).to_be_visible()
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(query(run="reverse", query="12", stage="decoder.1.resid_mid"))
    expect(page.get_by_text(re.compile(r"^Position 12, after the attention of layer 1"))).to_be_visible()
    page.get_by_role("radio", name="0", exact=True).click()
    expect(page).to_have_url(query(query="12", through="0"))
    expect(page.get_by_text(re.compile(r"^In the rollout through layer 0, "))).to_be_visible()
    page.go_back()
    expect(page.get_by_text(re.compile(r"^In the rollout through layer 1, "))).to_be_visible()


# Input


def test_back_and_forward_walk_through_the_views_of_a_page_and_the_pages(page: Page, address: str):
    page.goto(f"{address}/?run=reverse-aligned")
    wait_until_painted(page, plots=3)
    labels = {"3 1 4 1 5 9 2 6": out_strip(page).get_attribute("aria-label") or ""}
    field, (first, second, third) = page.get_by_label("The question", exact=True), INPUTS
    for typed, said in ((second, "23456789"), (third, "87654321")):
        type_into(page, "The question", typed)
        expect(out_strip(page)).to_have_attribute("aria-label", says(said))
        labels[typed] = out_strip(page).get_attribute("aria-label") or ""
        expect(page).to_have_url(query(input=typed.replace(" ", "+")))
    for step, typed in [
        (page.go_back, second),
        (page.go_back, first),
        (page.go_forward, second),
        (page.go_forward, third),
    ]:
        step()
        expect(out_strip(page)).to_have_attribute("aria-label", labels[typed])
        expect(field).to_have_value(typed)
    for name, path in [("Accuracy by position", "accuracy"), ("Overview", "")]:
        go_to(page, name)
        expect(page).to_have_url(
            re.compile(f"^{address}/{path}\\?run=reverse-aligned&input=1\\+2\\+3\\+4\\+5\\+6\\+7\\+8$")
        )
    expect(field).to_have_value(third)  # Accuracy by position does not follow the question, and has no field for it
    page.go_back()
    expect(page).to_have_url(re.compile(f"^{address}/accuracy"))
    expect(title(page)).to_have_text(re.compile("^Second half 1.00"))


def test_a_page_opens_its_socket_without_asking_below_its_own_path(page: Page, address: str):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    for path in ("", "heads", "heads/"):
        with page.expect_websocket() as opened:
            page.goto(f"{address}/{path}", wait_until="commit")
        assert opened.value.url == f"{address.replace('http', 'ws', 1)}/_stcore/stream"
    assert {name for name in asked if "_stcore/h" in name} == {"/_stcore/health", "/_stcore/host-config"}


def test_what_a_link_says_is_text_and_never_a_link(page: Page, address: str):
    """Neither Markdown nor what GitHub's autolinks would find in it."""
    foreign = "[click](http://evil.test) www.evil.test evil@evil.test <b>"
    page.goto(f"{address}/masks?{urlencode(dict.fromkeys(('architecture', 'run', 'mask'), foreign))}")
    notices = page.get_by_test_id("stAlert").filter(has_text="[click]")
    expect(notices).to_have_count(3)
    expect(notices.locator("a")).to_have_count(0)
    assert "evil" not in " ".join(link.get_attribute("href") or "" for link in page.locator("a").all())
