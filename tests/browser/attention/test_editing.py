"""Edits in a real browser: a chip added, switched off, painted on, removed, gone back to, and sent as a link."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.kit.driving import PAGES, PAINTED, choose, click_at, title, wait_until_painted

SITE = "decoder.0.self_attention"


def test_a_chip_is_painted_and_another_added_gone_back_from_and_taken_away_and_the_link_keeps_the_rest(
    page: Page, address: str
):
    diagonal = "80004000200010000800040002000100008000400020001000080004000200" + "01"
    page.goto(f"{address}/edits?run=reverse&edits=painted:{SITE}.1:16x16x{diagonal}")
    host, chips = page.locator(".painter[data-draws]"), page.locator("[class*=st-key-pill]")
    host.wait_for()
    wait_until_painted(page, PAGES["Edits"])
    click_at(host, PAINTED, [3, 0])  # one more bit, the first of the fourth row
    expect(page).to_have_url(re.compile("16x16x8000400020009000"))
    expect(chips).to_have_count(1)
    choose(page, "Edit", "patch from another step")
    expect(page.locator(".st-key-edit-step")).to_be_visible()  # what the button adds is on the page
    page.get_by_role("button", name="Add").click()
    patched = f"patch-step%3A{SITE}.0%3A20(&|$)"
    expect(page).to_have_url(re.compile(f"(~|%7E){patched}"))
    expect(title(page)).to_have_text(re.compile("^With 2 edits "))
    page.locator("[data-testid=stCheckbox] label", has_text="head 0.0 as at step 20").click()
    expect(page).to_have_url(re.compile(f"(~|%7E)-{patched}"))
    expect(title(page)).not_to_have_text(re.compile("^With 2 edits "))
    page.go_back()
    expect(title(page)).to_have_text(re.compile("^With 2 edits "))
    page.get_by_role("button", name="Take away: head 0.0 as at step 20").click()
    expect(chips).to_have_count(1)
    expect(page).not_to_have_url(re.compile("patch-step"))
    page.reload()
    host.wait_for()
    assert host.evaluate("host => Array.from(host.__painter.cells.slice(48, 53))") == [1, 0, 0, 1, 0]
