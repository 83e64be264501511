"""Check mine in a browser: code is pasted and checked, the first stage that differs is lit, and nobody else sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.kit.driving import SCRIPTS, query, title, violations

SECRET = "swordfish"
CODE = f"""import math

def {SECRET}(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(dim=1) @ value
"""
WRONG = re.compile("^Wrong: softmax runs over dimension 1, the heads")
WRITTEN = "async (at) => JSON.stringify((await import(`${at}/document/write.js`)).write())"


def code(page: Page):
    return page.get_by_role("textbox", name="Code", exact=True)


def press(page: Page, name: str) -> None:
    page.get_by_test_id("stMain").get_by_role("button", name=re.compile(f"^{name}")).click()


def test_code_is_pasted_and_checked_and_nobody_else_sees_any_of_it(new_page: Callable[..., Page], address: str) -> None:
    page, other = new_page(), new_page()
    page.goto(f"{address}/check")
    expect(title(page)).to_have_text(re.compile("^Is your attention right"))
    code(page).fill(CODE)
    press(page, "Check")  # in the midst of typing
    expect(title(page)).to_have_text(WRONG)
    row = page.get_by_role("row", name=re.compile("^softmax"))
    expect(row).to_contain_text("✕ differs first")
    assert row.evaluate("row => getComputedStyle(row).outlineStyle") == "solid"
    expect(page.get_by_role("row", name=re.compile("^masked"))).to_contain_text("✓ same")
    assert SECRET not in page.url
    written = page.evaluate(WRITTEN, f"{address}{SCRIPTS}")
    assert SECRET not in written
    assert json.loads(written)["title"] == "Attention Lab"  # and not the verdict
    assert "Wrong" not in written
    other.goto(f"{address}/check")
    expect(title(other)).to_have_text(re.compile("^Is your attention right"))
    expect(code(other)).to_have_value("")
    assert SECRET not in other.content()
    code(page).fill(CODE.replace("dim=1", "dim=-1"))
    code(page).press("Control+Enter")
    expect(title(page)).to_have_text("The code has changed since it was checked.")
    page.keyboard.press("Tab")
    page.get_by_test_id("stMain").get_by_role("button", name=re.compile("^Check")).focus()
    page.keyboard.press("k")
    expect(title(page)).to_have_text("Right in all that was tried.")


def test_an_example_is_accessible_before_and_after_its_check_and_its_mistake_is_opened_in_the_gallery(
    new_page: Callable[..., Page], address: str
) -> None:
    """axe-core at a projector's width, in the light and in the dark; on a phone nothing scrolls the page sideways."""
    page = new_page(viewport={"width": 1024, "height": 768}, reduced_motion="reduce")
    example = "heads-merged-without-transpose"
    page.goto(f"{address}/check?check_example={example}")
    expect(code(page)).not_to_have_value("")
    assert not violations(page)
    press(page, "Check")
    expect(title(page)).to_have_text(re.compile("^Wrong: heads are merged"))
    expect(page).to_have_url(query(check_example=example))
    page.emulate_media(color_scheme="dark")
    assert not violations(page)
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("() => document.querySelector('[data-testid=stMain]').scrollWidth === 390")
    page.get_by_role("button", name="Open it in the gallery").click()
    expect(page).to_have_url(re.compile(f"/mistakes[?].*mistake={example}"))
    expect(page.get_by_text("Heads are merged without the transpose.").first).to_be_visible()
    page.go_back()
    expect(title(page)).to_have_text(re.compile("^Wrong: heads are merged"))
