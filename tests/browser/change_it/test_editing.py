"""Edits in a real browser: a chip added, switched off, painted on, removed, gone back to, and sent as a link."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.kit.driving import PAGES, PAINTED, choose, click_at, title, wait_until_painted

SITE = "decoder.0.self_attention"


def edits(text: str) -> re.Pattern[str]:
    """An address with these edits."""
    return re.compile(f"[?&]edits={re.escape(text)}(&|$)")


def test_a_chip_is_added_switched_off_gone_back_to_painted_and_removed(page: Page, address: str):
    page.goto(f"{address}/edits?run=reverse")
    wait_until_painted(page, PAGES["Edits"])
    expect(title(page)).to_have_text(re.compile("^Nothing is edited"))
    choose(page, "Edit", "patch from another step")
    expect(page.locator(".st-key-edit-step")).to_be_visible()  # what the button adds is on the page
    page.get_by_role("button", name="Add").click()
    patched = f"patch-step%3A{SITE}.0%3A20"
    expect(page).to_have_url(edits(patched))
    expect(title(page)).to_have_text(re.compile("^With head 0.0 as at step 20 "))
    page.locator("[data-testid=stCheckbox] label", has_text="head 0.0 as at step 20").click()
    expect(page).to_have_url(edits(f"-{patched}"))
    expect(title(page)).to_have_text(re.compile("^Nothing is edited"))
    page.go_back()
    expect(title(page)).to_have_text(re.compile("^With head 0.0 as at step 20 "))
    page.get_by_role("button", name="Take away: head 0.0 as at step 20").click()
    expect(title(page)).to_have_text(re.compile("^Nothing is edited"))
    expect(page.locator("[class*=st-key-pill]")).to_have_count(0)


def test_a_stroke_changes_the_chip_that_is_painted(page: Page, address: str):
    diagonal = "80004000200010000800040002000100008000400020001000080004000200" + "01"
    page.goto(f"{address}/edits?run=reverse&edits=painted:{SITE}.1:16x16x{diagonal}")
    host = page.locator(".painter[data-draws]")
    host.wait_for()
    wait_until_painted(page, PAGES["Edits"])
    click_at(host, PAINTED, [3, 0])  # one more bit, the first of the fourth row
    expect(page).to_have_url(re.compile("16x16x8000400020009000"))
    expect(page.locator("[class*=st-key-pill]")).to_have_count(1)
    page.reload()
    host.wait_for()
    assert host.evaluate("host => Array.from(host.__painter.cells.slice(48, 53))") == [1, 0, 0, 1, 0]
