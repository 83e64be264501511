"""A hidden mistake as a model that every page can be asked about."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest
import torch

from dashboard.models import menu
from dashboard.models.model import Model
from dashboard.models.on_the_spot import hidden
from dashboard.view.link import limits
from dashboard.view.pages import PAGES
from tests.kit.pages import figures, link, open_page, press, shown
from transformer.mistakes import trained

ABOUT_A_RUN = [each.address for each in PAGES.values() if not each.imported]
NUMBERS = {mistake.name: number for number in range(400, 0, -1) for mistake, _ in [hidden.drawn(number)]}
"""A number for each mistake that can be hidden."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test asks how good the models are."""
    monkeypatch.setattr("transformer.mistakes._base.STEPS", 6)


def test_a_name_holds_a_number_and_nothing_else() -> None:
    assert hidden.number_of(hidden.called(7)) == 7
    for name in ("hidden-", "hidden-0", "hidden-07", "hidden-x", "hidden-5 ", "hidden-٣", f"hidden-{2**31}", "reverse"):
        assert hidden.number_of(name) is None
    assert limits("riddle")[1] == hidden.MOST
    assert limits("mistake_seed") == (min(hidden.SEEDS), max(hidden.SEEDS))
    assert set(NUMBERS) == {each.name for each in hidden.pool()}


def test_it_is_the_model_that_is_trained_with_the_mistake() -> None:
    mistake, seed = hidden.drawn(5)
    choice = menu.menu(named="hidden-5")["hidden-5"]
    found = Model.of(choice, choice.snapshots[-1])
    expected = trained(mistake, seed).model.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in found.network().state_dict().items())
    assert found.run is None
    assert "a hidden mistake" in choice.label()
    assert mistake.title not in choice.label() + choice.description()


def test_a_run_of_this_name_comes_first_and_who_may_only_look_begins_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformer.mistakes._base.STEPS", 7)  # so often no other test trains a mistake
    assert "hidden-4711" not in menu.menu(named="hidden-4711", may_train=False)
    assert "hidden-4711" in menu.menu(named="hidden-4711")
    assert "hidden-4711" not in menu.menu()
    monkeypatch.setattr(menu, "ROOT", tmp_path)
    (tmp_path / "hidden-4711").mkdir()
    assert menu.is_stored("hidden-4711")
    assert "hidden-4711" not in menu.menu(named="hidden-4711")


@pytest.mark.daily(2)
@pytest.mark.parametrize(("page", "mistake"), list(zip(ABOUT_A_RUN, cycle(sorted(NUMBERS)), strict=False)))
def test_every_page_opens_on_it(page: str, mistake: str) -> None:
    """Each mistake on a page or two."""
    name = hidden.called(NUMBERS[mistake])
    assert link(open_page(page, run=name))["run"] == name


def test_the_riddle_leads_to_it_and_back() -> None:
    app = open_page("mistakes", run="reverse", riddle="5")
    press(app, "Look at it on every page")
    assert link(app)["run"] == "hidden-5"
    assert "head-pattern" in figures(app)
    mistake, _ = hidden.drawn(5)
    assert mistake.title not in "".join(shown(each.value) for each in (*app.title, *app.markdown, *app.caption))
    app.switch_page(PAGES["mistakes"].script).run()
    assert app.title[0].value == "Which mistake is this?"
