"""Beyond the trained length: what is said and drawn of a measurement, and its page."""

from __future__ import annotations

import json
import lzma
import math
import re
import statistics
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dashboard.app_pages.train_it.lengths import figures, race
from dashboard.app_pages.train_it.lengths import measurement as lengths_measurement
from dashboard.models import no_positions
from dashboard.models.on_the_spot import quick_training
from tests.kit.pages import array, open_page
from tests.kit.pages import figures as drawn
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.experiments.lengths import Fall, Lengths, Trial
from transformer.model import Transformer, build

ROOT = Path(__file__).parents[4]
SHIPPED = ROOT / "checkpoints" / "lengths.json.xz"


def test_one_that_was_cut_off_says_so() -> None:
    found = Lengths.load(SHIPPED)
    assert "Only" not in lengths_measurement.made(found)
    cut = replace(found, trials=found.trials[:2])
    assert f"Only 2 of {len(found.trials)} trainings were made." in lengths_measurement.made(cut)


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
                "After 2,000 steps up to length 4, rotary reverses 1.00 of it, 0.43 of length 5; no encoding 8.",
            ),
            (made_up(1, 1, 1, 1, 0, 0, 0, 0), "After 2,000 steps up to length 4, no encoding reverses length 5."),
            (made_up(1, 1, 1, 1, 1, 1, 1, 0.001), "reverses 1.00 of it, 1.00 of length 5; rotary 0.0010 of length 8."),
            (
                made_up(1, 1, 1, 0.3, 0.2, encoding="none"),
                "a model without positions reverses 0.30 of it, 0.20 of length 5.",
            ),
            (made_up(1, 1), "After 2,000 steps up to length 4: no longer ones were measured."),
        ],
    )
    def test_the_title_says_what_was_measured(self, measurement: Lengths, words: str) -> None:
        assert words in lengths_measurement.headline(measurement)

    def test_a_mean_over_seeds_has_its_interval_and_one_seed_has_none(self) -> None:
        one = made_up(1, 1, 1, 0.9)
        assert lengths_measurement.within(one).endswith("in training (one seed): rotary 0.900.")
        trials = [made_up(1, 1, 1, share).trials[0] for share in (0.9, 0.8, 1)]
        several = replace(one, seeds=(0, 1, 2), trials=tuple(replace(t, seed=n) for n, t in enumerate(trials)))
        # Student's t of two degrees of freedom, 4.303, times 0.1 / √3
        said = "(mean over 3 seeds ± half its 95 % interval): rotary 0.900 ± 0.248."
        assert lengths_measurement.within(several).endswith(said)
        assert lengths_measurement.at_length(several, 4).endswith(said)
        assert "(mean over 1 or 2 seeds" in lengths_measurement.within(
            replace(
                several,
                encodings=("rotary", "alibi"),
                trials=(*several.trials[:2], replace(several.trials[2], positions="alibi")),
            )
        )

    @pytest.mark.parametrize(
        ("seeds", "words"),
        [
            (tuple(range(64)), "each encoding, seeds 0 to 63;"),
            ((4,), "each encoding, seed 4;"),
            ((0, 1, 5), "each encoding, seeds 0, 1 and 5;"),
        ],
    )
    def test_many_seeds_are_named_by_the_first_and_the_last(self, seeds: tuple[int, ...], words: str) -> None:
        assert words in lengths_measurement.made(replace(made_up(1), seeds=seeds))

    @pytest.mark.parametrize(
        ("falls", "words"),
        [
            ([None], "Each encoding got 2,000 steps. One that learns slowly may need more."),
            ([Fall(0.2, 0.1), None], "One that learns slowly may need more."),
            ([Fall(0.2, 0.1)], "At the end the loss was still falling for rotary: more steps may help there (mean of "),
            ([Fall(0.1, 0.1)], "At the end no loss was still falling (mean of the last 200 steps below that of"),
            ([Fall(0.2, 0.1), Fall(0.0, 0.3)], "At the end no loss was still falling"),
        ],
    )
    def test_who_was_still_learning_is_said(self, falls: list[Fall | None], words: str) -> None:
        found = made_up(1, 1, 1, 1, 0)
        trials = tuple(replace(found.trials[0], seed=seed, fall=fall) for seed, fall in enumerate(falls))
        assert words in lengths_measurement.unfinished(replace(found, seeds=(0, 1), trials=trials))


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


class TestPage:
    def test_its_numbers_are_the_file_s(self) -> None:
        app, values = open_page("lengths", longer="11"), json.loads(lzma.decompress(SHIPPED.read_bytes()))
        charts = drawn(app)
        spoken = next(each.value for each in app.caption if "the longest in training" in each.value)
        for name, said in (("rotary", "rotary"), ("alibi", "ALiBi"), ("none", "no positions")):
            trials = [trial for trial in values["trials"] if trial["positions"] == name]
            line = next(t for t in charts["exact-match"]["data"] if t["name"] == said)
            mean = np.mean([trial["exact"] for trial in trials], axis=0) / values["sequences"]
            np.testing.assert_allclose(array(line["y"]), mean, atol=1e-6)
            shares = [trial["exact"][7] / values["sequences"] for trial in trials]
            half = 1.998 * statistics.stdev(shares) / math.sqrt(64)  # Student's t of 63 degrees of freedom
            written = re.search(rf"{said} (\d\.\d+) ± (\d\.\d+)", spoken)
            assert written is not None
            assert float(written[1]) == pytest.approx(statistics.mean(shares), abs=0.0006)
            assert float(written[2]) == pytest.approx(half, abs=0.0006)
            panel = next(t for t in charts["places"]["data"] if t["name"] == said)
            mean = np.mean([trial["right"][10] for trial in trials], axis=0) / values["sequences"]
            np.testing.assert_allclose(array(panel["y"]), mean, atol=1e-6)
        assert app.title[0].value.startswith("After 500 steps up to length 8, ")
        still = []
        called = {"alibi": "ALiBi", "none": "no positions"}
        for name in ("learned", "sinusoidal", "rotary", "alibi", "none"):
            falls = [trial["fall"] for trial in values["trials"] if trial["positions"] == name]
            noise = math.sqrt(sum(fall["half"] ** 2 for fall in falls)) / len(falls)
            still += [called.get(name, name)] * (sum(fall["nats"] for fall in falls) / len(falls) > max(noise, 0.001))
        listed = f"{', '.join(still[:-1])} and {still[-1]}"
        words = f"Each encoding got 500 steps. At the end the loss was still falling for {listed}: more"
        assert any(caption.value.startswith(words) for caption in app.caption)

    @pytest.mark.daily(2)
    @pytest.mark.parametrize("content", [None, "", "[]", "{"])
    def test_without_a_file_it_says_so_and_offers_to_make_one(self, content, tmp_path: Path, monkeypatch) -> None:
        path = tmp_path / "lengths.json"
        if content is not None:
            path.write_text(content)
        monkeypatch.setitem(lengths_measurement.FILES, "shipped", path)
        app = open_page("lengths")
        assert any("cannot be shown" in error.value for error in app.error)
        assert any(button.label == "Measure again" for button in app.button)

    def test_one_of_one_s_own_is_shown_beside_the_shipped_one(self, tmp_path: Path, monkeypatch) -> None:
        own = tmp_path / "lengths.json"
        made_up(1, 1, 1, 1, 0, 0, 0, 0).save(own)
        monkeypatch.setitem(lengths_measurement.FILES, "own", own)
        app = open_page("lengths", measurement="own")
        assert "up to length 4" in app.title[0].value

    def test_a_link_to_one_that_is_not_there_falls_back(self, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.setitem(lengths_measurement.FILES, "own", tmp_path / "away.json")
        app = open_page("lengths", measurement="own", longer="190")
        assert any("own" in warning.value for warning in app.warning)
        assert "up to length 8" in app.title[0].value

    def test_the_bag_is_what_it_is_said_to_be(self) -> None:
        """The permutation test by hand, and the accuracy below the ceiling."""
        from transformer.analysis.accuracy.bags import bag_ceiling
        from transformer.analysis.intervals import wilson

        charts = drawn(open_page("lengths"))
        bars = next(t for t in charts["bag"]["data"] if t["name"] == "measured")
        low, _ = wilson(np.rint(array(bars["y"]) * no_positions.SEQUENCES).astype(int), no_positions.SEQUENCES, 4.0)
        assert (low <= bag_ceiling(8, 10)).all()
        model: Transformer = quick_training.trained(no_positions.small("none")).model
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

    def test_the_race_says_who_was_still_learning_of_those_that_did_not_solve_it(self) -> None:
        down, level = Fall(0.2, 0.1), Fall(0.0, 0.1)
        racers = [
            race.Racer("rotary", (90,), (1.0,), True, down),
            race.Racer("alibi", (600,), (0.5,), False, down),
            race.Racer("none", (600,), (0.4,), False, level),
        ]
        assert race.race_sentence(racers).startswith(
            "Solved: rotary at step 90. Not solved: ALiBi 0.50 after 600, no positions 0.40 after 600 steps. At the "
            "end the loss was still falling for ALiBi: more steps may help there (mean of the last 60 steps below "
        )
        assert "no loss was still falling" in race.race_sentence([racers[0], racers[2]])
        assert race.race_sentence(racers[:1]) == "Solved: rotary at step 90."


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
        next(button for button in app.button if button.label == "Measure again").click().run()
        assert begun == [tmp_path / "own.json"]
        assert [button.label for button in app.button if "easur" in button.label] == ["Stop measuring"]
        assert "up to length 8" in app.title[0].value
        assert not app.exception

    def test_what_cannot_begin_is_a_sentence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(self: lengths_measurement.Measuring, path: Path) -> None:
            raise OSError(28, "no room")

        monkeypatch.setattr(lengths_measurement.Measuring, "start", refuse)
        app = open_page("lengths")
        next(button for button in app.button if button.label == "Measure again").click().run()
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
