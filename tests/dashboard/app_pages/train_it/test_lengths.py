"""Beyond the trained length: the counting against models whose answers are known, the file, and its page."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from dashboard.app_pages.train_it.lengths import figures, race
from dashboard.app_pages.train_it.lengths import measurement as lengths_measurement
from dashboard.models import no_positions, quick_training
from tests.kit.pages import array, open_page
from tests.kit.pages import figures as drawn
from transformer import compiled_reverser
from transformer.__main__ import main
from transformer.compiled import compiled_config
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.experiments.lengths import Lengths, LengthsError, Trial
from transformer.experiments.lengths_measure import carry_out, measure, plan
from transformer.masks.painted import Painted
from transformer.model import Transformer, build, stretched
from transformer.tasks import TASKS

ROOT = Path(__file__).parents[4]
SHIPPED = ROOT / "checkpoints" / "lengths.json"
RELATIVE = ("sinusoidal", "rotary", "alibi", "none")


def small_plan() -> Lengths:
    """Five trainings of a few steps, on lengths 1 and 2."""
    planned = replace(plan(2, steps=3, seeds=(4,)), sequences=16)
    return replace(planned, config=replace(planned.config, model=ModelConfig(n_layers=1, d_model=16, n_heads=2)))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lengths, Path]:
    path = tmp_path_factory.mktemp("lengths") / "lengths.json"
    *_, found = carry_out(small_plan(), path)
    return found, path


class TestStretched:
    @pytest.mark.parametrize("positions", RELATIVE)
    def test_it_says_the_same_where_the_shorter_one_reaches(self, positions: str) -> None:
        model = build(RunConfig(task=TaskConfig(length=3), model=ModelConfig(positions=positions))).eval()
        tokens = torch.arange(6)[None]
        with torch.no_grad():
            assert torch.equal(stretched(model, 40)(tokens), model(tokens))
            assert stretched(model, 40)(torch.arange(12)[None].repeat(1, 3)).shape == (1, 36, 12)

    def test_learned_positions_end_where_their_table_does(self) -> None:
        model = build(RunConfig(task=TaskConfig(length=3)))
        with pytest.raises(ValueError, match="learned positions have no vector for position 7"):
            stretched(model, 7)
        assert torch.equal(stretched(model, 4).positions.get_parameter("table"), model.positions.table[:4])

    def test_a_painted_mask_ends_where_it_was_painted(self) -> None:
        mask = str(Painted.of(np.tril(np.ones((6, 6), dtype=bool))))
        model = build(RunConfig(task=TaskConfig(length=3), model=ModelConfig(positions="alibi", mask=mask)))
        with pytest.raises(ValueError, match="painted for 6"):
            stretched(model, 7)

    def test_it_leaves_the_generator_and_the_model_alone(self) -> None:
        model = build(RunConfig(task=TaskConfig(length=3), model=ModelConfig(positions="rotary")))
        before, state = [weight.clone() for weight in model.parameters()], torch.get_rng_state()
        longer_one = stretched(model, 30)
        assert torch.equal(torch.get_rng_state(), state)
        for weight in longer_one.parameters():
            weight.data.zero_()
        assert all(torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True))


class TestMeasure:
    def test_the_compiled_reverser_is_exact_at_its_length_and_ends_there(self) -> None:
        exact, right = measure(compiled_reverser(4), compiled_config(4).build_task(), 6, sequences=64, seed=1)
        assert exact[3] == 64
        assert right[3] == (64, 64, 64, 64)
        assert exact[4:] == right[4:] == (None, None)

    @pytest.mark.parametrize("task", ["reverse", "reverse-aligned", "copy"])
    def test_it_counts_what_a_model_says_by_itself(self, task: str) -> None:
        """Counted again with a loop: the answer said one argmax after the other, nobody helping."""
        kind = TASKS[task](length=2, symbols=2)
        config = RunConfig(task=TaskConfig(task=task, length=2, symbols=2), model=ModelConfig(positions="rotary"))
        model = build(config).eval()
        exact, _ = measure(model, kind, 4, sequences=40, seed=3)
        questions = np.random.default_rng([3, 1]).integers(0, 2, (40, 4))
        wide, whole = stretched(model, 20), 0
        for x in questions.tolist():
            wanted = x if task == "copy" else x[::-1]
            if task == "reverse-aligned":
                said = wide(torch.tensor([x]))[0].argmax(-1).tolist()
            else:
                read = [*x, 2]
                for _ in x:
                    read.append(int(wide(torch.tensor([read]))[0, -1].argmax()))
                said = read[5:]
            whole += said == wanted
        assert exact[3] == whole

    def test_a_model_that_always_says_three_is_right_once_in_ten(self) -> None:
        model = build(RunConfig(task=TaskConfig(length=2), model=ModelConfig(positions="alibi"))).eval()
        with torch.no_grad():
            model.unembedding.weight.zero_()
            model.unembedding.bias.zero_()[3] = 1.0
        exact, right = measure(model, TASKS["reverse"](length=2), 5, sequences=200, seed=9)
        questions = np.random.default_rng([9, 1]).integers(0, 10, (200, 5))
        assert right[4] == tuple((questions[:, ::-1] == 3).sum(axis=0).tolist())
        assert exact[4] == (questions == 3).all(axis=1).sum()


class TestFile:
    def test_it_comes_back_as_it_was_written(self, measured: tuple[Lengths, Path]) -> None:
        found, path = measured
        assert Lengths.load(path) == found
        assert found.complete
        assert [trial.positions for trial in found.trials] == ["learned", *RELATIVE]
        assert np.isnan(found.exact("learned")[0, 2:]).all()
        assert np.isfinite(found.exact("rotary")).all()
        assert found.accuracy("learned", 3).shape == (1, 3)

    def test_two_processes_find_what_one_finds(
        self, measured: tuple[Lengths, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A test of a page leaves that page's script there, and each process would begin by running it.
        monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
        found, _ = measured
        *_, other = carry_out(small_plan(), tmp_path / "lengths.json", processes=2)
        timeless = [[replace(trial, seconds=0.0) for trial in each.trials] for each in (found, other)]
        assert timeless[0] == timeless[1]

    def test_the_command_line_writes_one(self, tmp_path: Path, monkeypatch, capsys) -> None:
        monkeypatch.setattr("os.cpu_count", lambda: 1)
        monkeypatch.setattr("transformer.experiments.lengths_measure.SEQUENCES", 8)
        path = tmp_path / "own.json"
        assert main(["lengths", "--out", str(path), "--length", "1", "--steps", "1"]) == 0
        assert Lengths.load(path).longest == 3
        assert "15 of 15" in capsys.readouterr().out
        assert main(["lengths", "--out", str(path), "--length", "0"]) == 2
        assert "between 1 and 64" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("harm", "words"),
        [
            (lambda text: "", "no JSON"),
            (lambda text: text[: len(text) // 2], "no JSON"),
            (lambda text: "[" * 100_000, "no JSON"),
            (lambda text: "[1, 2]", "no measurement"),
            (lambda text: text.replace("lengths/1", "lengths/2"), "another version"),
            (lambda text: text.replace('"rotary"', '"lunar"'), "lunar"),
            (lambda text: text.replace('"sequences":16', '"sequences":0'), "damaged"),
            (lambda text: text.replace('"longest":6', '"longest":7'), "damaged"),
            (lambda text: text.replace('"exact":[', '"exact":[-1,'), "damaged"),
            (lambda text: text.replace('"seeds":[4]', '"seeds":[5]'), "trials"),
            (lambda text: text.replace('"n_layers":1', '"n_layers":"many"'), "damaged"),
            (lambda text: text + " " * 5_000_000, "too large"),
        ],
    )
    def test_any_other_file_is_a_sentence(
        self, harm, words: str, measured: tuple[Lengths, Path], tmp_path: Path
    ) -> None:
        path = tmp_path / "broken.json"
        path.write_text(harm(measured[1].read_text()))
        with pytest.raises(LengthsError, match=words) as error:
            Lengths.load(path)
        assert "\n" not in str(error.value)

    def test_none_at_all_is_a_sentence(self, tmp_path: Path) -> None:
        with pytest.raises(LengthsError, match=r"there is no file away\.json"):
            Lengths.load(tmp_path / "away.json")


def test_one_that_was_cut_off_says_so(measured: tuple[Lengths, Path]) -> None:
    found, _ = measured
    assert "Only" not in lengths_measurement.made(found)
    assert "Only 2 of 5 trainings were made." in lengths_measurement.made(replace(found, trials=found.trials[:2]))


def made_up(*shares: float, encoding: str = "rotary") -> Lengths:
    """A measurement whose one trial has these shares of 1000, trained up to length 4."""
    exact = tuple(round(1000 * share) for share in shares)
    right = tuple((count,) * length for length, count in enumerate(exact, 1))
    trial = Trial(encoding, 0, 0.0, 1.0, exact, right)
    config = RunConfig(task=TaskConfig(length=4, min_length=1))
    return Lengths(config, (encoding,), (0,), len(shares), 1000, "CPU", {}, (trial,))


class TestWords:
    @pytest.mark.parametrize(
        ("measurement", "words"),
        [
            (
                made_up(1, 1, 1, 1, 0.43, 0, 0, 0),
                "rotary still reverses 0.43 of length 5; no encoding reverses length 8.",
            ),
            (made_up(1, 1, 1, 1, 0, 0, 0, 0), "Trained up to length 4, no encoding reverses length 5."),
            (made_up(1, 1, 1, 1, 1, 1, 1, 0.001), "rotary still reverses 1.00 of length 5; rotary reverses 0.0010 of"),
            (made_up(1, 1, 1, 1, 0.2, encoding="none"), "a model without positions still reverses 0.20 of length 5."),
            (made_up(1, 1), "Trained up to length 4, and measured no further."),
        ],
    )
    def test_the_title_says_what_was_measured(self, measurement: Lengths, words: str) -> None:
        assert words in lengths_measurement.headline(measurement)


class TestFigures:
    LINES = (
        figures.Line("one", np.arange(1, 4), np.array([[1, 0.5, 0], [1, 0.3, 0.2]]), 0),
        figures.Line("two", np.arange(1, 4), np.array([[0.4, math.nan, math.nan]]), 1, "no vector for position 5"),
    )

    def test_thick_is_the_mean_and_thin_is_each_seed(self) -> None:
        figure = figures.exact_match_curves(self.LINES, trained=2, chance=0.1)
        one = next(trace for trace in figure.data if trace.name == "one")
        thin = next(trace for trace in figure.data if trace.name == "one, each seed")
        np.testing.assert_allclose(one.y, [1, 0.4, 0.1], atol=1e-6)
        np.testing.assert_allclose(np.array(thin.y).reshape(2, 4)[:, :3], self.LINES[0].values, atol=1e-6)
        assert any("two: no vector for position 5" in each.text for each in figure.layout.annotations)
        chance = next(trace for trace in figure.data if trace.name == "chance")
        np.testing.assert_allclose(chance.y, [0.1, 0.01, 0.001], rtol=1e-5)

    def test_each_encoding_has_a_panel_and_the_ground_ends_where_training_did(self) -> None:
        figure = figures.places_panels(self.LINES, trained=2, chance=0.1)
        assert figure.layout.xaxis.domain[1] < figure.layout.xaxis2.domain[0]
        grounds = [shape for shape in figure.layout.shapes if shape.type == "rect"]
        assert [(shape.x0, shape.x1) for shape in grounds] == [(0.5, 2.5)] * 2
        assert {trace.yaxis for trace in figure.data if trace.name == "two"} == {"y2"}
        assert not [
            s for s in figures.places_panels(self.LINES, trained=0, chance=0.1).layout.shapes if s.type == "rect"
        ]


@pytest.mark.skipif(not SHIPPED.is_file(), reason="no shipped measurement")
class TestShipped:
    def test_it_is_whole_and_honest(self) -> None:
        found = Lengths.load(SHIPPED)
        assert found.complete
        assert found.longest == 3 * found.trained
        assert found.config == plan().config
        assert len(found.seeds) >= 3
        assert np.isnan(found.exact("learned")[:, found.trained :]).all()
        for name in ("learned", "rotary"):  # what was trained on is learned
            assert found.exact(name)[:, found.trained - 1].mean() > 0.9
        for trial in found.trials:
            for whole, row in zip(trial.exact, trial.right, strict=True):
                assert (whole is None) == (row is None)
                assert row is None or whole <= min(row)
        assert json.loads(SHIPPED.read_text())["versions"].keys() >= {"torch", "python"}


class TestPage:
    def test_its_numbers_are_the_file_s(self) -> None:
        app, values = open_page("lengths", longer="11"), json.loads(SHIPPED.read_text())
        charts = drawn(app)
        for name, said in (("rotary", "rotary"), ("alibi", "ALiBi"), ("none", "no positions")):
            trials = [trial for trial in values["trials"] if trial["positions"] == name]
            line = next(t for t in charts["exact-match"]["data"] if t["name"] == said)
            mean = np.mean([trial["exact"] for trial in trials], axis=0) / values["sequences"]
            np.testing.assert_allclose(array(line["y"]), mean, atol=1e-6)
            panel = next(t for t in charts["places"]["data"] if t["name"] == said)
            mean = np.mean([trial["right"][10] for trial in trials], axis=0) / values["sequences"]
            np.testing.assert_allclose(array(panel["y"]), mean, atol=1e-6)
        assert app.title[0].value.startswith("Trained up to length 8, ")

    @pytest.mark.parametrize("content", [None, "", "[]", "{"])
    def test_without_a_file_it_says_so_and_offers_to_make_one(self, content, tmp_path: Path, monkeypatch) -> None:
        path = tmp_path / "lengths.json"
        if content is not None:
            path.write_text(content)
        monkeypatch.setitem(lengths_measurement.FILES, "shipped", path)
        app = open_page("lengths")
        assert any("cannot be shown" in error.value for error in app.error)
        assert any(button.label == "Measure anew" for button in app.button)

    def test_one_of_one_s_own_is_shown_beside_the_shipped_one(
        self, measured: tuple[Lengths, Path], monkeypatch
    ) -> None:
        monkeypatch.setitem(lengths_measurement.FILES, "own", measured[1])
        app = open_page("lengths", measurement="own")
        assert "Trained up to length 2" in app.title[0].value

    def test_a_link_to_one_that_is_not_there_falls_back(self, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.setitem(lengths_measurement.FILES, "own", tmp_path / "away.json")
        app = open_page("lengths", measurement="own", longer="190")
        assert any("own" in warning.value for warning in app.warning)
        assert "length 8" in app.title[0].value

    def test_the_bag_is_what_it_is_said_to_be(self) -> None:
        """The permutation test by hand, and the accuracy below the ceiling."""
        from transformer.analysis.accuracy.bags import bag_ceiling
        from transformer.analysis.intervals import wilson

        charts = drawn(open_page("lengths"))
        bars = next(t for t in charts["bag"]["data"] if t["name"] == "measured")
        low, _ = wilson(np.rint(array(bars["y"]) * no_positions.SEQUENCES).astype(int), no_positions.SEQUENCES, 4.0)
        assert (low <= bag_ceiling(8, 10)).all()
        model: Transformer = quick_training.trained(no_positions.small("none"), no_positions.SECONDS).model
        with torch.no_grad():
            says = [
                model(torch.tensor([[*x, 10]]))[0, -1] for x in ([3, 1, 4, 1, 5, 9, 2, 6], [6, 2, 9, 5, 1, 4, 1, 3])
            ]
        assert (says[0] - says[1]).abs().max() < 1e-4
        found = no_positions.turned("none", (3, 1, 4, 1, 5, 9, 2, 6), (6, 2, 9, 5, 1, 4, 1, 3))
        assert found.said == found.said_other == int(says[0].argmax())
        assert no_positions.turned("learned", (3, 1, 4, 1, 5, 9, 2, 6), (6, 2, 9, 5, 1, 4, 1, 3)).moved > 1

        carried = no_positions.carried((3, 1, 4, 1, 5, 9, 2, 6), (5, 2, 7, 0, 1, 6, 4, 3))
        assert 0 <= carried < 1e-4

    @pytest.mark.parametrize(("positions", "moves"), [("none", True), ("rotary", False)])
    def test_only_without_positions_do_outputs_move_along(
        self, positions: str, moves: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The same comparison sees a difference where there is one: it is no check that cannot fail."""

        config = RunConfig(task=TaskConfig(task="reverse-aligned"), model=ModelConfig(positions=positions))
        monkeypatch.setattr(quick_training, "trained", lambda *_: SimpleNamespace(model=build(config).eval()))
        carried = no_positions.carried.__wrapped__((3, 1, 4, 1), (2, 0, 3, 1))
        assert carried < 1e-4 if moves else carried > 1e-2

    def test_the_race_is_each_training_s_own_course(self, monkeypatch) -> None:
        from transformer.training.loop import train

        monkeypatch.setattr(race, "RACE_STEPS", 20)
        monkeypatch.setattr(lengths_measurement, "ORDER", ("learned", "none"))
        app = open_page("lengths", raced="1")
        lines = drawn(app)["race"]["data"]
        for positions, line in zip(("learned", "none"), lines, strict=True):
            config = race.racing(positions)
            steps = [s for s in train(build(config), config) if s.accuracy is not None]
            assert array(line["x"]).tolist() == [s.step for s in steps]
            np.testing.assert_allclose(array(line["y"]), [s.accuracy[8:].mean() for s in steps], atol=1e-6)


class TestMeasuringAnew:
    """The button, with a process that is none: the real one is the command line's, tested above."""

    def test_it_begins_once_and_the_shipped_one_stays_until_there_is_another(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begun: list[Path] = []
        monkeypatch.setitem(lengths_measurement.FILES, "own", tmp_path / "own.json")
        monkeypatch.setattr(lengths_measurement.Measuring, "running", property(lambda self: bool(begun)))
        monkeypatch.setattr(lengths_measurement.Measuring, "start", lambda self, path: begun.append(path))
        app = open_page("lengths")
        next(button for button in app.button if button.label == "Measure anew").click().run()
        assert begun == [tmp_path / "own.json"]
        assert [button.label for button in app.button if "easur" in button.label] == ["Stop measuring"]
        assert "length 8" in app.title[0].value
        assert not app.exception

    def test_what_cannot_begin_is_a_sentence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(self: lengths_measurement.Measuring, path: Path) -> None:
            raise OSError("no room")

        monkeypatch.setattr(lengths_measurement.Measuring, "start", refuse)
        app = open_page("lengths")
        next(button for button in app.button if button.label == "Measure anew").click().run()
        assert any("did not start: no room" in warning.value for warning in app.warning)

    def test_a_process_can_be_ended_and_says_that_it_was(self, tmp_path: Path) -> None:
        path, measuring = tmp_path / "own.json", lengths_measurement.Measuring("lengths")
        path.write_text("old")
        measuring.start(path)
        try:
            assert measuring.running
            assert not path.exists()
        finally:
            measuring.stop()
        assert not measuring.running
        assert measuring.failed
