"""An imported model in a browser: chosen, a head clicked, a text typed, a head removed, and the way back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.kit.driving import (
    MENUS,
    PATIENCE,
    PHONE,
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

PROJECTOR: ViewportSize = {"width": 1024, "height": 768}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("served")
    for name, kind in {"bert": "BertModel", "gpt2": "GPT2LMHeadModel"}.items():
        saved(kind, root / "models" / name)
    (root / "runs").mkdir()
    with dashboard(root / "runs", ATTENTION_LAB_MODELS=str(root / "models")) as served:
        yield served


def stands_in_nobodys_way(page: Page) -> None:
    """For axe-core at a projector's width; on a phone nothing scrolls sideways."""
    page.wait_for_function(SETTLED)
    assert not violations(page)
    page.set_viewport_size(PHONE)
    page.wait_for_function("() => document.scrollingElement.scrollWidth <= innerWidth")
    page.set_viewport_size(PROJECTOR)


def test_a_model_is_looked_into_by_hand_and_nothing_stands_in_anybodys_way(
    chromium: Browser, server: str, tmp_path: Path
) -> None:
    """At a projector's width all menus have room in the bar; one of the pages is looked at in the dark."""
    errors: list[str] = []
    with chromium.new_context(viewport=PROJECTOR, reduced_motion="reduce") as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{server}/imported")
        expect(title(page)).to_have_text(re.compile("[Hh]ead "))
        assert str(tmp_path.parent) not in page.content(), "no path stands on the page"
        choose(page, "Imported model", "gpt2")
        expect(page).to_have_url(query(imported="gpt2"))
        wait_until_painted(page, 2)
        for menu in {*MENUS.values()} - {""}:
            expect(page.get_by_test_id("stTopNavSection").filter(has_text=menu)).to_be_visible()
        click_head(page, 6)
        expect(page).to_have_url(query(head="decoder.1.self_attention.2"))
        expect(title(page)).to_have_text(re.compile(r"[Hh]ead 1\.2 "))
        field = page.get_by_test_id("stSidebar").get_by_role("textbox", name="Input")
        field.fill("The king is dead, long live the king!")
        field.press("Control+Enter")
        expect(page).to_have_url(re.compile("imported_input=The"))
        expect(grid(page)).to_be_visible()
        stands_in_nobodys_way(page)

        page.emulate_media(color_scheme="dark")
        go_to(page, "Its layers")
        expect(title(page)).to_have_text(re.compile(r"\d"))
        stands_in_nobodys_way(page)

        page.emulate_media(color_scheme="light")
        go_to(page, "Change its attention")
        expect(title(page)).to_have_text(re.compile("^Remove a head of this model"))
        stands_in_nobodys_way(page)
        page.get_by_role("button", name="Clear: switch every cell on").click()
        expect(page).to_have_url(re.compile("seen_mask=painted"))
        expect(title(page)).to_have_text(re.compile(r"^Under the painted \(144 cells\) mask, "))
        for address, words in (
            ("/ablation[?](?!.*seen_mask)", "^Remove a head of this model"),
            ("/stream[?]", " words?"),
            ("/imported[?]", "[Hh]ead "),
        ):
            page.go_back()
            expect(page).to_have_url(re.compile(address))
            expect(title(page)).to_have_text(re.compile(words))
        expect(page).to_have_url(query(imported="gpt2", head="decoder.1.self_attention.2"))
    assert not errors
