"""A member of a population as a model: from its weights where they are kept, else trained again from its seed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from dashboard.models import menu
from dashboard.models.model import Model
from dashboard.models.on_the_spot import members
from tests.kit.experiments import populations
from tests.kit.pages import link, open_page

SMALL = {"length": "3", "n_layers": "1", "n_heads": "2", "d_model": "16", "max_steps": "7", "device": "cpu"}
NAME = "small/learned-seed-1"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with one population in it."""
    root = tmp_path_factory.mktemp("members")
    populations.trained(root / "small", "0-1", SMALL | {"positions": "learned,rotary"})
    return root


@pytest.fixture
def root(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(trained, tmp_path / "runs")
    monkeypatch.setattr(menu, "ROOT", tmp_path / "runs")
    return tmp_path / "runs"


def without_weights(root: Path) -> None:
    for folder in root.glob("small/*/"):
        shutil.rmtree(folder)


def opened(name: str = NAME) -> Model:
    choice = menu.menu(named=name)[name]
    return Model.of(choice, choice.snapshots[-1])


def test_one_with_weights_is_a_run(root: Path) -> None:
    found = opened()
    assert found.run is not None
    assert found.run.folder == root / "small" / "learned-seed-1"
    assert found.step == 7
    assert "of a population" in menu.menu(named=NAME)[NAME].label()


def test_one_without_is_trained_again_to_the_same_weights(root: Path) -> None:
    kept = opened().network().state_dict()
    share = menu.menu(named=NAME)[NAME].accuracy
    without_weights(root)
    found = opened()
    assert found.run is None
    assert (found.config, found.step) == (members.bare(root, NAME).config, 7)
    assert menu.menu(named=NAME)[NAME].accuracy == pytest.approx(share)
    assert all(torch.allclose(value, kept[name], atol=1e-4) for name, value in found.network().state_dict().items()
               if not name.endswith("key.bias"))  # whose gradient is rounding alone  # fmt: skip


def test_who_may_only_look_begins_no_training(root: Path) -> None:
    without_weights(root)
    other = "small/rotary-seed-0"
    assert other not in menu.menu(named=other, may_train=False)
    opened(other).network()
    assert other in menu.menu(named=other, may_train=False)


@pytest.mark.parametrize(
    "name", ["small/nobody", "none/learned-seed-1", "small/../small/learned-seed-1", "../x", "small/", "small/.x/y"]
)
def test_a_name_of_nobody_is_no_model(root: Path, name: str) -> None:
    assert name not in menu.menu(named=name)
    assert members.bare(root, name) is None


SOME = ("overview", "heads", "accuracy", "runs", "positions", "masks", "machine", "film")


@pytest.mark.daily(3)
@pytest.mark.parametrize(("page", "kept"), [(page, number % 2 == 0) for number, page in enumerate(SOME)])
def test_pages_open_on_one_with_weights_and_on_one_without(root: Path, page: str, kept: bool) -> None:
    if not kept:
        without_weights(root)
    assert link(open_page(page, run=NAME))["run"] == NAME
