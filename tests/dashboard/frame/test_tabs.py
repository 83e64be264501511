"""Where the pages stand: in the menus, some as tabs of one place."""

from __future__ import annotations

import pytest

from dashboard.view.pages import PAGES
from tests.kit.pages import open_page

SHARED = [page for page in PAGES if len(PAGES[page].tabs) > 1]


def links(app) -> list[str]:
    """The pages that the strip of tabs leads to, in its order."""
    named = {each.title: each.address for each in PAGES.values()}
    return [named[each.proto.label] for each in app.get("page_link") if each.proto.label in named]


def test_the_menus_name_each_page_or_the_place_that_it_shares_with_others():
    entries = [each.entry or each.title for each in PAGES.values()]
    places = [*dict.fromkeys(entries)]
    assert len(places) <= 22
    assert entries == [place for place in places for each in entries if each == place], "tabs stand side by side"
    assert len({each.icon for each in PAGES.values()}) == len(PAGES)
    assert all(each.menu == each.tabs[0].menu for each in PAGES.values())


@pytest.mark.parametrize("page", SHARED)
def test_a_page_that_shares_its_place_leads_to_all_of_its_tabs(page):
    assert links(open_page(page))[: len(PAGES[page].tabs)] == [each.address for each in PAGES[page].tabs]


def test_a_page_alone_and_a_step_of_a_lecture_have_no_tabs():
    assert not {"tokens", "writing"} & {*links(open_page("heads"))}
    assert not {"corners", "context"} & {*links(open_page("bottleneck", lecture="bottleneck", lecture_step="1"))}
