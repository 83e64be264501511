"""Populations: each member's numbers are those of its training alone, whatever ends, fails or is cut off beside it."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

from tests.kit.cut_off import WRITTEN
from tests.kit.waiting import PATIENCE
from transformer.__main__ import main
from transformer.analysis.intervals import wilson
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.experiments.populations.carry_out import carry_out, in_batches, train_one
from transformer.experiments.populations.plan import Sweep, SweepError, planned, seeds_of
from transformer.experiments.populations.scenes import packed, scenes, unpacked
from transformer.experiments.populations.statistics import (
    FEWEST,
    accuracy_band,
    frequencies,
    median_interval,
    steps_until_solved,
)
from transformer.experiments.populations.table import TABLE, Population, Row, populations, read_table
from transformer.experiments.populations.together import Together, clip_each, shape_of, why_alone
from transformer.model import build
from transformer.training.loop import Step, Training, TrainingError, train
from transformer.training.runs import Run

CPU = torch.device("cpu")
SMALL = {"length": "3", "n_layers": "1", "n_heads": "2", "d_model": "16", "d_ff": "0", "symbols": "4", "device": "cpu"}
"""A model that learns to reverse three of four symbols within some thirty steps."""
batches = partial(in_batches, device=CPU)


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """Members are measured on fewer sequences."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformer.experiments.populations.member.MEASURED", 128)
        patch.setattr("transformer.experiments.populations.member.LOOKED_AT", 8)
        yield


def options(**settings: str) -> list[str]:
    """The words that say a small sweep on the command line."""
    return [word for name, value in (SMALL | settings).items() for word in (f"--{name.replace('_', '-')}", value)]


def small_sweep(seeds: str = "0-3", **settings: str) -> Sweep:
    return planned(seeds, SMALL | {"max_steps": "30", "learning_rate": "0.02"} | settings)


def alone(config: RunConfig) -> list[Step]:
    return list(train(build(config), config))


def together(configs: list[RunConfig]) -> tuple[list[list[Step | TrainingError]], list[Training]]:
    trainings = [Training(build(config), config) for config in configs]
    batch, found = Together(trainings), {training: [] for training in trainings}
    while batch.members:
        for training, steps in batch.take_steps(100).items():
            found[training] += steps
    return list(found.values()), trainings


MODELS = {
    "decoder": RunConfig(),
    "encoder": RunConfig(task=TaskConfig(task="reverse-aligned")),
    "encoder-decoder": RunConfig(task=TaskConfig(task="reverse-translate")),
    "rotary": RunConfig(model=ModelConfig(positions="rotary")),
    "alibi": RunConfig(model=ModelConfig(positions="alibi")),
    "sinusoidal": RunConfig(model=ModelConfig(positions="sinusoidal")),
    "tied, post-norm": RunConfig(model=ModelConfig(tied=True, norm="post", d_ff=16)),
    "RMSNorm": RunConfig(model=ModelConfig(norm_kind="rms")),
    "decayed": RunConfig(training=TrainingConfig(weight_decay=0.1, warmup_steps=3, decay_after=5)),
}


class TestTogether:
    @pytest.mark.daily(3)
    @pytest.mark.parametrize("kind", MODELS)
    def test_each_is_trained_as_it_is_alone(self, kind: str) -> None:
        base = MODELS[kind]
        task = replace(base.task, length=4, symbols=5)
        model = replace(base.model, n_layers=1, n_heads=2, d_model=16, d_ff=base.model.d_ff and 16)
        settings = replace(base.training, device="cpu", max_steps=12, batch_size=8, evaluate_every=4)
        configs = [RunConfig(task=task, model=model, training=replace(settings, seed=seed)) for seed in (0, 7, 11)]
        found, trainings = together(configs)
        for config, steps, training in zip(configs, found, trainings, strict=True):
            model = build(config)
            wanted = list(train(model, config))
            assert [step.step for step in steps] == [step.step for step in wanted]
            for one, other in zip(steps, wanted, strict=True):
                assert isinstance(one, Step)
                assert one.loss == pytest.approx(other.loss, abs=2e-5)
                assert one.gradient_norm == pytest.approx(other.gradient_norm, rel=1e-3)
                assert one.learning_rate == other.learning_rate
                assert (one.accuracy is None) == (other.accuracy is None)
                if one.accuracy is not None:
                    assert np.abs(one.accuracy - other.accuracy).max() <= 2 / one.probed  # a tie may fall otherwise
            for name, weight in training.model.named_parameters():
                if name.endswith("key.bias"):  # its gradient is rounding alone, and Adam makes that large
                    continue
                assert torch.allclose(weight, model.get_parameter(name), atol=1e-3)

    def test_who_is_solved_leaves_and_changes_nothing_for_the_others(self) -> None:
        configs = [member.config for member in small_sweep("0-2", max_steps="60").members()]
        found, _ = together(configs)
        wanted = [alone(config) for config in configs]
        assert [len(steps) for steps in found] == [len(steps) for steps in wanted]
        assert len({len(steps) for steps in found}) > 1  # they did not end at once
        assert [steps[-1].solved for steps in found] == [steps[-1].solved for steps in wanted]

    def test_one_that_breaks_leaves_with_the_sentence_that_it_has_alone(self) -> None:
        configs = [member.config for member in small_sweep("0-2", max_steps="10").members()]
        trainings = [Training(build(config), config) for config in configs]
        with torch.no_grad():
            trainings[1].model.unembedding.weight.fill_(math.nan)
        batch = Together(trainings)
        first = batch.take_steps(1)
        assert str(first[trainings[1]][-1]).startswith("the loss is no longer a number at step 1, learning rate 0.02:")
        assert batch.members == [trainings[0], trainings[2]]
        last = first
        while batch.members:
            last = batch.take_steps(1)
        for place in (0, 2):
            wanted = alone(configs[place])
            assert first[trainings[place]][-1].loss == pytest.approx(wanted[0].loss, abs=1e-5)
            assert last[trainings[place]][-1].loss == pytest.approx(wanted[-1].loss, abs=1e-3)

    def test_models_of_two_shapes_or_at_two_steps_are_no_batch(self) -> None:
        one, other = (member.config for member in small_sweep("0", positions="learned,rotary").members())
        with pytest.raises(ValueError, match="share all settings but their seeds"):
            Together([Training(build(one), one), Training(build(other), other)])
        ahead = Training(build(one), one)
        ahead.take_step()
        with pytest.raises(ValueError, match="stand at one step"):
            Together([Training(build(one), one), ahead])

    @pytest.mark.parametrize(
        ("config", "words"),
        [
            (RunConfig(model=ModelConfig(architecture="gru"), task=TaskConfig(task="reverse-translate")), "recurrent"),
            (RunConfig(task=TaskConfig(min_length=2)), "lengths vary"),
            (RunConfig(model=ModelConfig(dropout=0.1)), "dropout"),
            (RunConfig(training=TrainingConfig(precision="bfloat16")), "16 bits"),
        ],
    )
    def test_what_cannot_be_trained_in_a_batch_says_why(self, config: RunConfig, words: str) -> None:
        assert words in why_alone(config)
        assert not why_alone(RunConfig())

    @given(st.lists(st.floats(-5, 5), min_size=12, max_size=12), st.floats(0.1, 3))
    def test_each_gradient_is_clipped_by_its_own_norm(self, values: list[float], most: float) -> None:
        gradients = torch.tensor(values).view(3, 4)
        parts = [gradients[:, :1].clone(), gradients[:, 1:].clone()]
        norms = clip_each(parts, most)
        for member in range(3):
            weights = [torch.zeros(1, requires_grad=True), torch.zeros(3, requires_grad=True)]
            weights[0].grad, weights[1].grad = gradients[member, :1].clone(), gradients[member, 1:].clone()
            norm = torch.nn.utils.clip_grad_norm_(weights, most)
            assert float(norms[member]) == pytest.approx(float(norm), rel=1e-5, abs=1e-6)
            for part, weight in zip(parts, weights, strict=True):
                assert torch.allclose(part[member], weight.grad, atol=1e-5)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two encodings from two seeds, trained in batches."""
    folder = tmp_path_factory.mktemp("populations") / "small"
    for _ in carry_out(small_sweep("0-1", positions="learned,none"), folder, batches):
        pass
    return folder


def without_time(row: Row) -> Row:
    """What does not hang on the clock."""
    return replace(row, seconds=0.0, reason=row.reason.partition(",")[0], loss=None, shares=None)


class TestCarryOut:
    def test_a_row_is_what_the_members_folder_and_its_training_alone_say(self, trained: Path) -> None:
        found = Population.load(trained)
        assert len(found.rows) == found.planned == 4
        for member in found.sweep.members():
            row, run, wanted = found.rows[member.name], Run(trained / member.name), alone(member.config)
            assert (row.step, row.solved) == (len(wanted), wanted[-1].solved)
            assert row.loss == pytest.approx(wanted[-1].loss, abs=1e-3)
            assert run.config == member.config
            assert run.state.status == "finished"
            assert [line["step"] for line in run.metrics()] == list(range(1, len(wanted) + 1))
            assert run.evaluation["correct"] == list(row.correct)
            assert run.evaluation["snapshot"] == run.digest()
            assert list(run.snapshots()) == [0, row.step]
            assert run.film.steps[-1] == row.step
            assert set(row.kinds) == {"decoder.0.self_attention.0", "decoder.0.self_attention.1"}
            assert row.working in row.kinds

    def test_side_by_side_gives_the_same_rows(self, trained: Path, tmp_path: Path) -> None:
        sweep = small_sweep("0", positions="learned,none")
        *_, found = carry_out(sweep, tmp_path / "other", lambda left: (row for one in left for row in train_one(one)))
        wanted = Population.load(trained).rows
        for name, row in found.rows.items():
            assert without_time(row) == without_time(wanted[name])

    @pytest.mark.nightly
    def test_processes_train_them_too(self, trained: Path, tmp_path: Path) -> None:
        words = [
            "sweep",
            "--seeds",
            "0-1",
            "--how",
            "side-by-side",
            "--processes",
            "2",
            "--out",
            str(tmp_path / "other"),
        ]
        words += options(max_steps="30", learning_rate="0.02", positions="learned,none")
        # In a process of its own: a pool begins with the main module, and that of a test's worker is no module.
        subprocess.run([sys.executable, "-m", "transformer", *words], check=True, timeout=PATIENCE)
        found, wanted = read_table(tmp_path / "other" / TABLE), Population.load(trained).rows
        assert len(found) == 4
        for name, row in found.items():  # measured on more sequences than the tests' own
            assert (row.step, row.solved, row.status) == (wanted[name].step, wanted[name].solved, "finished")

    def test_what_was_cut_off_goes_on_from_where_it_was(self, trained: Path, tmp_path: Path) -> None:
        sweep, folder = small_sweep("0-1", positions="learned,none"), tmp_path / "cut"
        growing = carry_out(sweep, folder, batches)
        for found in growing:
            if len(found.rows) == 1:
                growing.close()
                break
        left = [Run(folder / member.name) for member in sweep.members() if member.settings["positions"] == "learned"]
        cut = [run for run in left if run.state.status == "stopped"]
        assert cut
        assert all(run.resumable and run.state.step > 0 for run in cut)
        begun = {run.name: (run.folder / "metrics.jsonl").read_text() for run in cut}
        *_, found = carry_out(sweep, folder, batches)
        wanted = Population.load(trained).rows
        assert {name: without_time(row) for name, row in found.rows.items()} == {
            name: without_time(row) for name, row in wanted.items()
        }
        for name, text in begun.items():
            assert (folder / name / "metrics.jsonl").read_text().startswith(text)  # no step was taken twice
            assert Run(folder / name).film.steps.tolist() == Run(trained / name).film.steps.tolist()

    def test_all_done_is_not_trained_again(self, trained: Path) -> None:
        before = {path: path.stat().st_mtime_ns for path in trained.glob("*/metrics.jsonl")}
        *_, found = carry_out(small_sweep("0-1", positions="learned,none"), trained, batches)
        assert len(found.rows) == 4
        assert {path: path.stat().st_mtime_ns for path in trained.glob("*/metrics.jsonl")} == before

    def test_what_cannot_be_built_is_a_row_with_its_reason(self, tmp_path: Path) -> None:
        sweep = small_sweep("0-1", n_heads="2,3", max_steps="2")
        *_, found = carry_out(sweep, tmp_path / "odd", batches)
        failed = [row for row in found.rows.values() if row.status == "failed"]
        assert [row.reason for row in failed] == ["d_model (16) must be divisible by n_heads (3)"] * 2
        assert len(found.rows) == 4

    def test_a_training_that_breaks_is_a_row_with_its_reason(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("transformer.experiments.populations.together.learning_rate", lambda *_: math.inf)
        *_, found = carry_out(small_sweep("0-1"), tmp_path / "broken", batches)
        for row in found.rows.values():
            assert row.status == "failed"
            assert row.reason.startswith("the loss is no longer a number at step 2")
            assert Run(tmp_path / "broken" / row.member).state.status == "failed"

    def test_another_sweep_in_the_folder_stays(self, trained: Path) -> None:
        with pytest.raises(SweepError, match="there is another sweep in small already"):
            next(carry_out(small_sweep("0-7"), trained, batches))


class TestTable:
    def test_the_file_says_what_the_folders_say(self, trained: Path) -> None:
        rows = read_table(trained / TABLE)
        assert len(rows) == 4
        for name, row in rows.items():
            kept = Row.read(trained / name / "row.json")
            assert replace(row, seconds=0.0, loss=None) == replace(kept, seconds=0.0, loss=None)
            assert row.loss == pytest.approx(kept.loss, rel=1e-5)
            assert row.seconds == pytest.approx(kept.seconds, abs=1e-3)

    def test_a_damaged_file_is_named(self, trained: Path, tmp_path: Path) -> None:
        (tmp_path / "sweep.json").write_text((trained / "sweep.json").read_text())
        (tmp_path / TABLE).write_text("member,status\nlearned-seed-0,finished\n")
        with pytest.raises(SweepError, match=r"results\.csv cannot be used"):
            Population.load(tmp_path)
        (tmp_path / "sweep.json").write_text("{}")
        with pytest.raises(SweepError, match=r"sweep\.json is not a sweep"):
            Population.load(tmp_path)

    def test_folders_with_a_sweep_are_found(self, trained: Path) -> None:
        assert populations(trained.parent) == [trained]


class TestPlan:
    def test_seeds_are_numbers_and_spans(self) -> None:
        assert seeds_of("0-3,7") == (0, 1, 2, 3, 7)
        for words in ("", "a", "3-1", "-1", "0-99999"):
            with pytest.raises(ConfigError):
                seeds_of(words)

    def test_every_combination_has_every_seed_and_a_name_of_its_own(self) -> None:
        sweep = planned("0-1", {"positions": "learned,rotary", "n-heads": "1,2", "max_steps": "5"})
        members = sweep.members()
        assert [each.name for each in members][:3] == ["learned-1-seed-0", "learned-1-seed-1", "learned-2-seed-0"]
        assert len({each.name for each in members}) == sweep.combinations * 2 == 8
        assert {(each.config.model.positions, each.config.model.n_heads) for each in members} == {
            (positions, heads) for positions in ("learned", "rotary") for heads in (1, 2)
        }
        assert all(each.config.training.max_steps == 5 for each in members)

    def test_its_problems_are_those_of_its_members(self) -> None:
        sweep = planned("0-2", {"d_model": "12", "n_heads": "1,2,5,7", "positions": "learned,rotary"})
        problems = {each.problem for each in sweep.members() if each.problem}
        assert len(problems) > 1
        assert sweep.problems() == sorted(problems)
        too_large = Sweep({}, (2**31 - 2, 2**31 - 1, 2**31), {})
        assert too_large.problems() == [each.problem for each in too_large.members() if each.problem]
        assert len(too_large.problems()) == 1

    def test_a_rate_that_the_positions_decide_is_decided_for_each(self) -> None:
        decays = {
            each.settings["positions"]: each.config.training.decay_after
            for each in planned("0", {"positions": "learned,sinusoidal"}).members()
        }
        assert decays == {"learned": 0, "sinusoidal": 40}

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"positons": "none"}, "did you mean positions"),
            ({"n_heads": "two"}, "n-heads must be a whole number, not 'two'"),
            ({"n_heads": "1,1"}, "n_heads has 1 twice"),
            ({"n_heads": "1,"}, "n-heads must not be empty"),
            ({"tied": "perhaps"}, "tied must be true or false"),
            ({"seed": "1"}, "there is no setting 'seed'"),
        ],
    )
    def test_what_cannot_be_used_is_named(self, settings: dict[str, str], words: str) -> None:
        with pytest.raises(ConfigError, match=words):
            planned("0", settings)

    def test_a_stored_plan_is_the_plan(self, tmp_path: Path) -> None:
        sweep = planned("0-2", {"tied": "true,false", "min-length": "none,2", "dropout": "0.1"})
        sweep.save(tmp_path)
        assert Sweep.load(tmp_path) == sweep
        assert sweep.members()[-1].config.task.min_length == 2


class TestStatistics:
    @pytest.mark.parametrize("n", [1, 5, 6, 7, 10, 33, 64])
    def test_the_interval_holds_the_median_as_often_as_it_says(self, n: int) -> None:
        low, high = median_interval([float(i) for i in range(1, n + 1)])

        def coverage(rank: int) -> Fraction:
            """P(the median lies between the values of this rank from either end), each on either side like a coin."""
            return 1 - 2 * sum((Fraction(math.comb(n, k), 2**n) for k in range(rank)), Fraction(0))

        if n < FEWEST:
            assert math.isnan(low)
            assert coverage(1) < Fraction(95, 100)
            return
        rank = int(low)
        assert high == n + 1 - rank
        assert coverage(rank) >= Fraction(95, 100) > coverage(rank + 1)

    def test_one_that_is_not_solved_is_later_than_all(self) -> None:
        rows = [row_of(step, solved) for step, solved in [(10, True), (20, True), (50, False), (50, False), (30, True)]]
        found = steps_until_solved(rows)
        assert (found.median, found.solved, found.seeds) == (30, 3, 5)
        assert math.isinf(steps_until_solved([*rows, row_of(50, False)]).median)
        assert (found.share_low, found.share_high) == pytest.approx(tuple(map(float, wilson(3, 5))))

    def test_failures_are_not_counted_among_the_seeds(self) -> None:
        assert steps_until_solved([row_of(5, True), Row.failed("x", 0, "no")]).seeds == 1
        with pytest.raises(ValueError, match="nothing has ended"):
            steps_until_solved([Row.failed("x", 0, "no")])

    def test_kinds_are_counted_by_layer_and_by_seed(self) -> None:
        heads = [f"decoder.0.self_attention.{head}" for head in range(2)]
        rows = [
            replace(row_of(1, True), kinds=dict(zip(heads, ("expected", kind), strict=True)))
            for kind in ("expected", "mixed", "mixed")
        ]
        found = {(each.layer, each.kind): each for each in frequencies(rows)}
        expected = found["decoder.0.self_attention", "expected"]
        assert (expected.members, expected.heads, expected.seeds) == (3, 4, 3)
        assert found["decoder.0.self_attention", "mixed"].share == pytest.approx(2 / 3)

    def test_the_band_is_the_quantiles_of_the_shares(self) -> None:
        rows = [replace(row_of(1, True), sequences=10, correct=(count, 10)) for count in range(11)]
        assert accuracy_band(rows).tolist()[0] == pytest.approx([0.5, 1])
        assert accuracy_band(rows).tolist()[1:] == [pytest.approx([0.05, 1]), pytest.approx([0.95, 1])]


def row_of(step: int, solved: bool) -> Row:
    return Row(f"seed-{step}", "finished", step, "…", solved, sequences=4, exact=1, correct=(4, 2))


class TestScenes:
    def test_they_are_what_the_members_films_show(self, trained: Path) -> None:
        found = Population.load(trained)
        made = scenes(trained, found, {"positions": "learned"})
        assert made.members == tuple(f"learned-seed-{seed}" for seed in range(2))
        for place, name in enumerate(made.members):
            film = Run(trained / name).film
            site, _, index = made.heads[place].rpartition(".")
            for frame, step in enumerate(made.steps):
                at = max(i for i, each in enumerate(film.steps) if each <= step)
                assert (made.levels[place, frame] == film.readings[site].levels[at, int(index)]).all()
                assert (made.right[place, frame] == film.correct[at]).all()
        losses = [[line["loss"] for line in Run(trained / name).metrics()] for name in made.members]
        assert made.loss[0] == pytest.approx(np.mean([each[0] for each in losses]))
        assert made.loss[-1] == pytest.approx(np.mean([each[-1] for each in losses]))

    def test_as_a_file_they_are_the_same(self, trained: Path, tmp_path: Path) -> None:
        found = Population.load(trained)
        both = [scenes(trained, found, settings) for settings in found.sweep.settings()]
        (tmp_path / "scenes.npz").write_bytes(packed(both, frames=1000))
        for number, each in enumerate(both):
            again = unpacked(tmp_path / "scenes.npz", number)
            assert np.abs(again.levels.astype(int) - each.levels).max() <= 8  # of 255: sixteen levels
            assert (again.right == each.right).all()
            assert again.members == each.members
            assert again.loss == pytest.approx(each.loss, rel=1e-6)


class TestCommand:
    def test_it_trains_and_goes_on(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        words = ["sweep", "--seeds", "0-1", "--out", str(tmp_path / "sweep"), "--how", "together"]
        words += options(max_steps="3", n_heads="1,2")
        assert main(words) == 0
        said = capsys.readouterr().out
        assert "4 of 4 have ended, 0 of them solved" in said
        assert "n_heads 1: 0 of 2 seeds within 3 steps" in said
        assert main(words) == 0
        assert len(read_table(tmp_path / "sweep" / TABLE)) == 4

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--seeds", "x"], "seeds are numbers and spans"),
            (["--positons", "none"], "did you mean positions"),
            (["--processes", "0"], "processes must be between 1 and 256"),
            (["--how", "slowly"], "--how"),
        ],
    )
    def test_nonsense_is_one_line_and_exit_code_2(
        self, words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["sweep", "--out", str(tmp_path / "none"), *words]) == 2
        assert said in capsys.readouterr().err
        assert not (tmp_path / "none").exists()


def test_one_shape_is_all_but_the_seed() -> None:
    one, other = (RunConfig(training=TrainingConfig(seed=seed)) for seed in (1, 2))
    assert shape_of(one) == shape_of(other)
    assert shape_of(one) != shape_of(RunConfig(training=TrainingConfig(learning_rate=0.1)))


@pytest.mark.nightly
def test_a_batch_that_is_killed_goes_on_from_what_was_written_down_last(tmp_path: Path) -> None:
    settings = {"max_steps": "60", "solved_at": "2", "evaluate_every": "30"}
    sweep, folder = small_sweep("0-2", **settings), tmp_path / "killed"
    words = ["sweep", "--seeds", "0-2", "--how", "together", "--out", str(folder)]
    words += options(learning_rate="0.02", **settings)
    program = [sys.executable, "-m", "tests.kit.cut_off"]
    assert subprocess.run([*program, *words], timeout=PATIENCE).returncode == -signal.SIGKILL
    runs = [Run(folder / member.name) for member in sweep.members()]
    assert [run.state.status for run in runs] == ["lost"] * 3
    assert [resume_step(run.folder / "resume.safetensors") for run in runs] == [WRITTEN] * 3
    assert len(runs[0].metrics()) > WRITTEN, "steps that are taken again"
    subprocess.run([sys.executable, "-m", "transformer", *words], check=True, timeout=PATIENCE)
    assert len(Population.load(folder).rows) == 3
    for run in runs:
        assert [line["step"] for line in run.metrics()] == list(range(1, 61))
        assert run.film.steps[0] == 0
        assert run.film.steps[-1] == 60


def resume_step(path: Path) -> int:
    """After which step a state was written down."""
    with safe_open(str(path), framework="np") as file:
        return int(json.loads(file.metadata()["progress"])["step"])
