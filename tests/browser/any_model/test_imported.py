"""An imported model in a browser: chosen, a head clicked, a text typed, a head removed, and the way back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.driving import (
    PATIENCE,
    SETTLED,
    choose,
    click_head,
    dashboard,
    go_to,
    grid,
    query,
    title,
    violations,
    wait_until_painted,
)
from tests.kit.foreign.folders import saved

SCREEN = {"width": 1440, "height": 900}
MENUS = ("Look inside", "Change it", "Train it", "Text", "How it began", "Learn by doing", "Any model")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("served")
    for name, kind in {"bert": "BertModel", "gpt2": "GPT2LMHeadModel"}.items():
        saved(kind, root / "models" / name)
    (root / "runs").mkdir()
    with dashboard(root / "runs", ATTENTION_LAB_MODELS=str(root / "models")) as served:
        yield served


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page in a profile of its own, whose scripts may not fail."""
    errors: list[str] = []
    with chromium.new_context(viewport=SCREEN) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
    assert not errors


def test_a_model_is_looked_into_by_hand(page: Page, server: str, tmp_path: Path) -> None:
    page.goto(f"{server}/imported")
    expect(title(page)).to_have_text(re.compile(r"^8 heads\. "), timeout=PATIENCE)
    assert str(tmp_path.parent) not in page.content(), "no path stands on the page"
    choose(page, "Imported model", "gpt2")
    expect(page).to_have_url(query(imported="gpt2"))
    wait_until_painted(page, 2)
    click_head(page, 6)
    expect(page).to_have_url(query(head="decoder.1.self_attention.2"))
    expect(title(page)).to_have_text(re.compile(r" head 1\.2 looks "))
    field = page.get_by_test_id("stSidebar").get_by_role("textbox", name="Input")
    field.fill("The king is dead, long live the king!")
    field.press("Control+Enter")
    expect(page).to_have_url(re.compile("imported_input=The"))
    expect(grid(page)).to_be_visible()
    go_to(page, "Change its attention")
    expect(title(page)).to_have_text(re.compile("^Nothing is changed yet"), timeout=PATIENCE)
    page.go_back()
    expect(title(page)).to_have_text(re.compile(r"^8 heads\. "), timeout=PATIENCE)
    expect(page).to_have_url(query(imported="gpt2", head="decoder.1.self_attention.2"))


def test_the_mask_is_chosen_and_painted(page: Page, server: str) -> None:
    page.goto(f"{server}/ablation?imported=bert")
    expect(title(page)).to_have_text(re.compile("^Nothing is changed yet"), timeout=PATIENCE)
    page.get_by_role("radio", name="causal", exact=True).click()
    expect(title(page)).to_have_text(re.compile("^Under the causal mask the model’s own output changes by "))
    expect(page).to_have_url(query(seen_mask="causal"))
    page.get_by_role("button", name="Clear: switch every cell on").click()
    expect(page).to_have_url(re.compile("seen_mask=painted"))


@pytest.mark.parametrize(("view", "scheme"), [("imported", "light"), ("stream", "dark"), ("ablation", "light")])
def test_nothing_stands_in_anybodys_way(chromium: Browser, server: str, view: str, scheme: str) -> None:
    """axe-core at a projector's width, where all menus have room in the bar; on a phone nothing scrolls sideways."""
    context = chromium.new_context(
        viewport={"width": 1024, "height": 768}, color_scheme=scheme, reduced_motion="reduce"
    )
    try:
        page = context.new_page()
        page.goto(f"{server}/{view}?imported=gpt2")
        expect(title(page)).to_have_text(re.compile(r"\d|^Nothing"), timeout=PATIENCE)
        page.wait_for_function(SETTLED)
        for menu in MENUS:
            expect(page.get_by_test_id("stTopNavSection").filter(has_text=menu)).to_be_visible()
        assert not violations(page)
        page.set_viewport_size({"width": 390, "height": 800})
        page.wait_for_function("() => document.scrollingElement.scrollWidth <= innerWidth")
    finally:
        context.close()
