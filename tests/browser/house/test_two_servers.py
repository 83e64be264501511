"""Two servers on one folder of runs, one of them among strangers: what one begins the other sees, and what is whose."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import SCREEN
from tests.kit.driving import ROOT, dashboard, type_into, wait_until_painted
from tests.kit.runs import reached
from transformer.training.exchange.inspection import faults
from transformer.training.listing import list_runs

LINK = re.compile(r"The owner's link: (\S+)")
FIRST = {"heads": 3, "": 3, "accuracy": 2}
"""Pages on which the first readers meet, and how many plots stand there."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guests") / "log"


@pytest.fixture(scope="module")
def people(chromium: Browser, runs: Path, log: Path) -> Iterator[tuple[str, list[Page]]]:
    """A server on which everybody is a guest without the owner's link, and three browsers that share nothing.

    They come at once at a cold start: PyTorch and pandas are being imported while the first pages are drawn.
    """
    contexts = [chromium.new_context(viewport=SCREEN) for _ in FIRST]
    pages = [context.new_page() for context in contexts]
    with dashboard(runs, log, ATTENTION_LAB_ROLE="guest") as address:
        for page, path in zip(pages, FIRST, strict=True):
            page.goto(f"{address}/{path}", wait_until="commit")
        for page, plots in zip(pages, FIRST.values(), strict=True):
            wait_until_painted(page, plots)
        yield address, pages
    for context in contexts:
        context.close()
    assert "Traceback" not in log.read_text(errors="replace")


def button(page: Page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def become_owner(page: Page, address: str, log: Path) -> None:
    link = LINK.search(log.read_text())
    assert link is not None
    parts = urlsplit(link[1])
    page.goto(f"{address}{parts.path}?{parts.query}")
    expect(page).not_to_have_url(re.compile("token"))


def test_guests_do_not_see_or_touch_each_other_and_the_owner_may_do_all(
    people: tuple[str, list[Page]], log: Path, runs: Path
) -> None:
    shared, (ann, bob, owner) = people
    ann.goto(f"{shared}/?heads=1&layers=1&feed_forward=0&max_steps=3")
    said = [page.get_by_text("You are a guest here").inner_text() for page in (ann, bob)]
    names = [re.search(r"“@(\w{6})", each)[1] for each in said]
    assert names[0] != names[1]

    ann.get_by_test_id("stSidebar").get_by_test_id("stBaseButton-primary").first.click()
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

    become_owner(owner, shared, log)
    owner.goto(f"{shared}/runs?run={trained.name}")
    expect(owner.get_by_role("heading", name="All runs")).to_be_visible()
    expect(owner.get_by_text("You are a guest here")).to_have_count(0)
    button(owner, "Delete").click()
    stem, _, guest = trained.name.partition("@")  # a word joiner between them keeps it from becoming a link
    expect(owner.get_by_text(re.compile(f"{stem}.?@{guest} was deleted"))).to_be_visible()
    assert not trained.exists()


@pytest.fixture
def good(runs: Path) -> Iterator[Path]:
    """A run among the others, whatever it is called in the end."""
    folder, renamed = runs / "good", runs / "mine"
    shutil.copytree(ROOT / "checkpoints" / "reverse-aligned", folder)
    yield renamed
    for each in (folder, renamed):
        shutil.rmtree(each, ignore_errors=True)


def test_a_run_begun_by_one_server_is_stopped_by_the_other_and_one_renames_what_the_other_looks_at(
    page: Page, address: str, people: tuple[str, list[Page]], log: Path, runs: Path, good: Path
) -> None:
    other, (*_, there) = people
    become_owner(there, other, log)
    before = {run.name for run in list_runs(runs)}
    page.goto(f"{address}/positions?run=good&layers=1&heads=1&width=8&positions=none&max_steps=100000")
    page.get_by_test_id("stSidebar").get_by_test_id("stBaseButton-primary").click()
    panel = page.locator(".st-key-training p").first
    expect(panel).to_contain_text("none-1")
    (run,) = (run for run in list_runs(runs) if run.name not in before)
    there.goto(f"{other}/?run=good")
    expect(there.locator(".st-key-training-of-another")).to_contain_text(run.name)
    button(there, "Watch").click()
    expect(there.locator(".st-key-training p").first).to_contain_text(run.name)
    there.locator(".st-key-stop button").click()
    expect(panel).to_contain_text("stopped by hand")
    reached(run, "stopped")
    assert faults(run) == []

    page.goto(f"{address}/runs?run=good&compare=good")
    there.goto(f"{other}/heads?run=good")
    wait_until_painted(there, 3)
    type_into(page, "Rename it", "mine")
    expect(page.get_by_text("good is now called mine.")).to_be_visible()
    assert good.is_dir()
    there.goto(f"{other}/heads?run=good")  # its own link may say another run's name by now
    expect(there.get_by_text("There is no run “good” here")).to_be_visible()
    expect(there.get_by_label("Model", exact=True)).not_to_have_value(re.compile("^good"))
    wait_until_painted(there, 3)
    expect(there.get_by_text("There is no run “good” here")).to_be_visible()
