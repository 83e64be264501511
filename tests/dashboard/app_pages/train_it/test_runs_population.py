"""The panel of a population on *Runs and races*: what it plans, and that its command trains that very plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.app_pages.train_it.runs import population
from tests.kit.experiments.populations import made_up
from tests.kit.pages import open_page
from transformer.__main__ import app
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.experiments.populations import plan as plans
from transformer.experiments.populations.table import Row

CONFIGS = {
    "the default": RunConfig(),
    "another shape and rate": RunConfig(
        task=TaskConfig(length=6, min_length=2), model=ModelConfig(n_layers=3, d_model=32, mask="sliding-window:3"),
        training=TrainingConfig(learning_rate=0.0123, seed=5, max_steps=40, device="cpu"),
    ),
    "in place": RunConfig(task=TaskConfig(task="reverse-aligned"), model=ModelConfig(norm="post", dropout=0.1)),
    "recurrent": RunConfig(task=TaskConfig(task="reverse-translate"), model=ModelConfig(architecture="gru")),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_the_command_trains_the_plan_in_which_nothing_varies_but_what_is_named(name: str) -> None:
    config = CONFIGS[name]
    over = ("attention",) if config.model.recurrent else ("positions", "n_heads")
    plan = population.planned(config, over, 3)
    _command, bound, _ = app.parse_args(["sweep", *population.options(plan)], print_error=False, exit_on_error=False)
    assert plans.planned(bound.arguments["seeds"], bound.arguments["settings"]) == plan
    seed = config.training.seed
    assert [member.config for member in population.planned(config, (), 2).members()] == [
        replace(config, training=replace(config.training, seed=each)) for each in (seed, seed + 1)
    ]


def test_what_the_positions_decide_is_decided_for_each_encoding() -> None:
    members = population.planned(RunConfig(), ("positions",), 1).members()
    wanted = {each: RunConfig(model=ModelConfig(positions=each)) for each in population.POSITIONS}
    assert {member.settings["positions"]: member.config for member in members} == wanted


def test_the_page_says_how_many_and_begins_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun: list[tuple[Path, tuple[str, ...]]] = []
    monkeypatch.setattr(population.sweeping, "start", lambda folder, *words: begun.append((folder, words)))
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)
    app = open_page("runs", sweep_seeds="8", sweep_over="positions,n_heads", max_steps="5")
    assert "120 trainings: 8 seeds, 15 combinations of settings." in " ".join(each.value for each in app.caption)
    app.button(key="train-population").click().run()
    assert not app.exception
    [(folder, words)] = begun
    assert folder == tmp_path / "population-1"
    assert words[:2] == ("--seeds", "0-7")
    assert plans.Sweep.load(folder).combinations == 15


@pytest.mark.daily(1)
@pytest.mark.parametrize("ended", [4, 3])
def test_one_whose_members_failed_has_ended_and_one_without_their_rows_was_cut_off(
    ended: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = iter(range(4))

    def row(member: plans.Member) -> Row | None:
        return Row.failed(member.name, 0, "no reason") if next(rows) < ended else None

    made_up(tmp_path / "population-1", "0-3", {"max-steps": "5"}, row)
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)
    monkeypatch.setattr(type(population.sweeping), "failed", True)  # the command says so where a member failed
    monkeypatch.setattr(population.sweeping, "path", tmp_path / "population-1")
    said = " ".join(each.value for each in open_page("runs").caption)
    assert ("The last population was cut off." in said) == (ended < 4)
