"""Strangers on one server: each trains into a folder of one's own, and nobody changes what is another's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import SCREEN
from tests.kit.driving import dashboard

LINK = re.compile(r"The owner's link: (\S+)")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guests") / "log"


@pytest.fixture(scope="module")
def shared(runs: Path, log: Path) -> Iterator[str]:
    """A server on which everybody is a guest without the owner's link."""
    with dashboard(runs, log, ATTENTION_LAB_ROLE="guest") as address:
        yield address
    assert "Traceback" not in log.read_text()


@pytest.fixture
def people(chromium: Browser) -> Iterator[list[Page]]:
    """Three browsers that share nothing."""
    contexts = [chromium.new_context(viewport=SCREEN) for _ in range(3)]
    yield [context.new_page() for context in contexts]
    for context in contexts:
        context.close()


def button(page: Page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def test_guests_do_not_see_or_touch_each_other_and_the_owner_may_do_all(
    shared: str, log: Path, runs: Path, people: list[Page]
) -> None:
    ann, bob, owner = people
    preset = "?heads=1&layers=1&feed_forward=0&max_steps=3"
    for page in (ann, bob):
        page.goto(f"{shared}/{preset}")
        expect(page.get_by_text("You are a guest here")).to_be_visible()
    names = [re.search(r"“@(\w{6})", page.get_by_text("You are a guest here").inner_text())[1] for page in (ann, bob)]
    assert names[0] != names[1]

    button(ann, "Train T").or_(ann.get_by_test_id("stSidebar").get_by_test_id("stBaseButton-primary")).first.click()
    expect(ann).to_have_url(re.compile(rf"run=[^&]*%40{names[0]}"))
    (trained,) = (runs / ".guests" / names[0]).iterdir()
    assert trained.name.endswith(f"@{names[0]}")
    ann.reload()
    expect(ann.get_by_text(f"“@{names[0]}”")).to_be_visible()  # the same guest

    bob.goto(f"{shared}/runs")
    expect(bob.get_by_role("heading", name="All runs")).to_be_visible()
    expect(button(bob, "Delete")).to_be_disabled()
    assert trained.name not in bob.content()
    bob.goto(f"{shared}/?run={trained.name}")  # a link that Ann has sent
    expect(bob.get_by_role("combobox", name="Model")).to_have_value(re.compile("guest's"))

    answer = bob.evaluate("fetch('rooms', {method: 'POST'}).then(async (a) => [a.status, (await a.json()).error])")
    assert answer == [403, "Only the owner of this server can open a room."]
    assert bob.evaluate("fetch('_stcore/upload_file/a/b', {method: 'PUT', body: 'x'}).then((a) => a.status)") == 403

    link = LINK.search(log.read_text())
    assert link is not None
    parts = urlsplit(link[1])
    owner.goto(f"{shared}{parts.path}?{parts.query}")
    expect(owner).not_to_have_url(re.compile("token"))
    owner.goto(f"{shared}/runs?run={trained.name}")
    expect(owner.get_by_role("heading", name="All runs")).to_be_visible()
    expect(owner.get_by_text("You are a guest here")).to_have_count(0)
    button(owner, "Delete").click()
    stem, _, guest = trained.name.partition("@")  # a word joiner between them keeps it from becoming a link
    expect(owner.get_by_text(re.compile(f"{stem}.?@{guest} was deleted"))).to_be_visible()
    assert not trained.exists()
