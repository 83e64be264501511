"""The dashboard as a person uses it, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.kit.driving import (
    PAGES,
    click_head,
    dashboard,
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

UNSOLVABLE = "layers=1&heads=1&width=8&positions=none"
"""A model that cannot reverse, so that its training lasts as long as it may; its steps are quick."""


def panel(page: Page) -> Locator:
    """The headline of the training that is watched."""
    return page.locator(".st-key-training p").first


def train(page: Page) -> Locator:
    return page.get_by_test_id("stSidebar").get_by_test_id("stBaseButton-primary")


def says(answer: str) -> re.Pattern[str]:
    """The strip of an answer of which everything is right."""
    return re.compile(f"^out: {', '.join(f'{symbol} right' for symbol in answer)}\\.?$")


@pytest.mark.smoke
def test_it_opens_on_a_model_that_reverses(page: Page, address: str):
    page.goto(address)
    expect(title(page)).to_have_text("It reverses: 8 of 8 right.")
    expect(plot(page, "overview-pattern")).to_be_visible()
    expect(page.locator("[role=img][aria-label^='in: 3, 1, 4, 1, 5, 9, 2, 6']")).to_be_visible()
    expect(out_strip(page)).to_have_attribute("aria-label", says("62951413"))
    wait_until_painted(page, plots=3)
    expect(grid(page)).to_have_attribute("data-panels", "8")
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text("Second half 1.00, first half 0.10 = chance: the mask holds.")).to_be_visible()
    expect(page).to_have_url(f"{address}/?run=reverse")


def test_a_cold_start_bears_several_readers_at_once(chromium: Browser, runs: Path, tmp_path: Path):
    """PyTorch and pandas are being imported while the first pages are drawn: nobody may meet a half of either."""
    with dashboard(runs, tmp_path / "log") as fresh, chromium.new_context() as context:
        opened = []
        for path, plots in [("heads", 3), ("", 3), ("accuracy", 2)]:
            page = context.new_page()
            page.goto(f"{fresh}/{path}", wait_until="commit")
            opened.append((page, plots))
        for page, plots in opened:
            wait_until_painted(page, plots)
    assert "Traceback" not in (tmp_path / "log").read_text(errors="replace")


# Heads


def test_a_click_in_the_grid_enlarges_a_head_and_the_link_keeps_it(
    page: Page, new_page: Callable[..., Page], address: str
):
    page.goto(address)
    wait_until_painted(page, plots=3)
    heading = page.get_by_test_id("stMain").get_by_text(
        re.compile(
            r"^Head \d\.\d puts .* on the token it "
            r"should output\.$"
        )
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
    page.reload()
    expect(heading).to_have_text(sentence)
    expect(grid(page)).to_have_attribute("data-focus", str(column + 1))
    other = new_page(locale="en-GB")  # a browser profile of its own
    other.goto(page.url)
    expect(other.get_by_text(sentence)).to_be_visible()
    expect(grid(other)).to_have_attribute("data-focus", str(column + 1))
    grid(other).press("ArrowLeft")
    expect(other.locator(".scroller ~ .foot .sentence").first).to_have_text(f"Head 0.{column}")


def test_pointing_at_a_cell_says_a_sentence(page: Page, address: str):
    page.goto(f"{address}/masks?head=decoder.0.self_attention.2&mask=causal")
    wait_until_painted(page, plots=PAGES["Mask effects"])
    figure = plot(page, "after-pattern")
    label = figure.locator(".hoverlayer .hovertext")
    point_at_cell(figure, row=8, column=7)
    expect(label).to_have_text(re.compile(r"^query 'SEP' at 9 reads '6' at 8: (1\.00|0\.9\d)$"))
    point_at_cell(figure, row=2, column=5)
    expect(label).to_have_text("query '4' at 3 may not see '9' at 6")


# Pages


def test_a_click_looks_into_a_stage(page: Page, address: str):
    page.goto(f"{address}/layers")
    wait_until_painted(page, plots=PAGES["Through the layers"])
    expect(title(page)).to_have_text(
        re.compile(r"^The answer appears in layer \d: after its .*, 8 of 8 are right, and \d before\.$")
    )
    point_at_cell(plot(page, "lens"), row=3, column=11)
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(query(run="reverse", query="12", stage="decoder.1.resid_mid"))
    expect(page.get_by_text(re.compile(r"^Position 12, after the attention of layer 1"))).to_be_visible()
    page.get_by_role("radio", name="0", exact=True).click()
    expect(page).to_have_url(query(query="12", through="0"))
    expect(page.get_by_text(re.compile(r"^In the rollout through layer 0, "))).to_be_visible()
    page.go_back()
    expect(page.get_by_text(re.compile(r"^In the rollout through layer 1, "))).to_be_visible()


def test_another_encoding_is_drawn(page: Page, address: str):
    page.goto(f"{address}/positions")
    expect(title(page)).to_have_text(
        re.compile(r"^Learned positions: neighbours have .* vectors, with cosine 0\.\d\d\.$")
    )
    page.get_by_role("radio", name="sinusoidal", exact=True).click()
    expect(title(page)).to_have_text(
        re.compile(r"^Sinusoidal positions: neighbours have .* vectors, with cosine 0\.\d\d\.$")
    )
    expect(page).to_have_url(query(run="reverse", encoding="sinusoidal"))
    wait_until_painted(page, plots=8)
    # cos 0 = 1: the last column of the first row
    corner = plot(page, "encoding").evaluate("host => host.querySelector('.js-plotly-plot').calcdata[0][0].z[0].at(-1)")
    assert corner == pytest.approx(1)
    point_at_cell(plot(page, "encoding"), row=12, column=5)  # its rows count from 1
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(query(cursor="12"))
    # sin 11, dimension 0 at position 12
    expect(
        page.get_by_test_id("stMain").get_by_text(re.compile("^At position 12, by dimension: 0: −1.00, "))
    ).to_be_visible()


# Input


def test_back_and_forward_walk_through_the_views(page: Page, address: str):
    page.goto(address)
    wait_until_painted(page, plots=3)
    expect(page).to_have_url(query(run="reverse"))
    first = out_strip(page).get_attribute("aria-label") or ""
    field, labels = page.get_by_label("Input", exact=True), [first]
    for typed in ("9 8 7 6 5 4 3 2", "0 0 0 0 1 1 1 1"):
        type_into(page, "Input", typed)
        expect(out_strip(page)).not_to_have_attribute("aria-label", labels[-1])
        expect(page).to_have_url(query(input=typed.replace(" ", "+")))
        labels.append(out_strip(page).get_attribute("aria-label") or "")
    for step, shown, typed in [
        (page.go_back, labels[1], "9 8 7 6 5 4 3 2"),
        (page.go_forward, labels[2], "0 0 0 0 1 1 1 1"),
        (page.go_back, labels[1], "9 8 7 6 5 4 3 2"),
        (page.go_back, labels[0], "3 1 4 1 5 9 2 6"),
    ]:
        step()
        expect(out_strip(page)).to_have_attribute("aria-label", shown)
        expect(field).to_have_value(typed)


def test_the_view_goes_along_to_the_other_pages_and_one_step_back_leads_to_the_page_before(page: Page, address: str):
    page.goto(f"{address}/?run=reverse-aligned&input=1+2+3+4+5+6+7+8")
    expect(out_strip(page)).to_have_attribute("aria-label", says("87654321"))
    for name, path in [("Attention heads", "heads"), ("Accuracy by position", "accuracy"), ("Overview", "")]:
        go_to(page, name)
        expect(page).to_have_url(
            re.compile(f"^{address}/{path}\\?run=reverse-aligned&input=1\\+2\\+3\\+4\\+5\\+6\\+7\\+8$")
        )
        expect(page.get_by_label("Input", exact=True)).to_have_value("1 2 3 4 5 6 7 8")
    page.go_back()
    expect(page).to_have_url(re.compile(f"^{address}/accuracy"))
    expect(title(page)).to_have_text(re.compile("^Second half 1.00"))


@pytest.mark.parametrize("path", ["", "heads", "heads/"])
def test_a_page_opens_its_socket_without_asking_below_its_own_path(page: Page, address: str, path: str):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    with page.expect_websocket() as opened:
        page.goto(f"{address}/{path}")
    assert opened.value.url == f"{address.replace('http', 'ws', 1)}/_stcore/stream"
    expect(title(page)).to_be_visible()
    assert {name for name in asked if "_stcore/h" in name} <= {"/_stcore/health", "/_stcore/host-config"}


def test_what_a_link_says_is_text_and_never_a_link(page: Page, address: str):
    """Neither Markdown nor what GitHub's autolinks would find in it."""
    foreign = "[click](http://evil.test) www.evil.test evil@evil.test <b>"
    for name in ("architecture", "run", "mask"):
        page.goto(f"{address}/masks?{urlencode({name: foreign})}")
        notice = page.get_by_test_id("stAlert").filter(has_text="[click]")
        expect(notice).to_be_visible()
        assert notice.locator("a").count() == 0
        assert "evil" not in " ".join(link.get_attribute("href") or "" for link in page.locator("a").all())


@pytest.mark.nightly
def test_a_link_can_leave_the_sidebar_closed(page: Page, address: str):
    page.goto(f"{address}/layers?run=reverse&sidebar=0")
    wait_until_painted(page, PAGES["Through the layers"])
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    expect(page).to_have_url(re.compile(r"[?&]sidebar=0(&|$)"))
    page.goto(f"{address}/layers?run=reverse")
    wait_until_painted(page, PAGES["Through the layers"])
    expect(page.get_by_test_id("stSidebar")).not_to_have_attribute("data-collapsed", "true")
