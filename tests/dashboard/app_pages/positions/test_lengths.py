"""What positions buy: what is said and drawn of a measurement, of the shipped population, and of models made here."""

from __future__ import annotations

import csv
import json
import lzma
import math
import re
import statistics
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.positions.lengths import figures, measurement, population, race
from dashboard.models import no_positions
from dashboard.models.on_the_spot import quick_training
from tests.kit import claims, strangers
from tests.kit.claims.laws.measurements import Measured, Raced
from tests.kit.pages import ROOT, array, open_page, press, shown, trace
from tests.kit.pages import figures as drawn
from tests.kit.runs import TINY, untrained
from transformer.analysis.accuracy.bags import bag_ceiling
from transformer.analysis.intervals import wilson
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.experiments.lengths import Fall, Lengths, Trial, in_order
from transformer.foundation.claims import Claim
from transformer.model import Transformer, build
from transformer.positions import ENCODINGS as PLUG_INS
from transformer.training.loop import train

SHIPPED = ROOT / "checkpoints" / "lengths.json.xz"
ENCODINGS = ROOT / "checkpoints" / "encodings"


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page must be right about small models that have hardly been trained as well."""
    monkeypatch.setattr(no_positions, "STEPS", 30)


@cache
def page() -> AppTest:
    """The page as it is shipped, for all who only read it."""
    return open_page("lengths", longer="11")


def captions(app: AppTest) -> str:
    return "\n".join(caption.value for caption in app.caption)


def test_one_that_was_cut_off_says_so() -> None:
    found = Lengths.load(SHIPPED)
    assert "Only" not in measurement.made(found)
    cut = replace(found, trials=found.trials[:2])
    assert f"Only 2 of {len(found.trials)} trainings were made." in measurement.made(cut)


LACKING = "is a model with relative positions. This picture has no line for such models."


def test_a_model_whose_encoding_was_not_measured_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below both pictures of what is shipped; not of a model whose encoding has a line."""
    strangers.lend(monkeypatch, PLUG_INS, "by-distance")
    untrained(root / "mine", RunConfig(model=replace(TINY, positions="by-distance")))
    untrained(root / "other", RunConfig(model=replace(TINY, positions="alibi")))
    said = shown(captions(open_page("lengths", run="mine")))
    assert said.count(f"mine {LACKING}") == 2
    assert f"mine {LACKING} “Measure again” trains with every encoding that there is." in said
    assert "has no line" not in captions(open_page("lengths", run="other"))


def test_a_recurrent_network_has_no_encoding_to_be_missed() -> None:
    config = ModelConfig(architecture="gru", positions="alibi")
    assert measurement.missing(["rotary"], "one", config) == ""
    assert measurement.missing(["rotary"], "one", ModelConfig(positions="none")).startswith("one is a model without p")


def made_up(*shares: float, encoding: str = "rotary") -> Lengths:
    """A measurement whose one trial has these shares of 1000, trained up to length 4."""
    exact = tuple(round(1000 * share) for share in shares)
    right = tuple((count,) * length for length, count in enumerate(exact, 1))
    trial = Trial(encoding, 0, 0.0, 1.0, exact, right)
    config = RunConfig(task=TaskConfig(length=4, min_length=1))
    return Lengths(config, (encoding,), (0,), len(shares), 1000, "CPU", {}, (trial,))


def as_measured(found: Lengths) -> Measured:
    """The same as the laws know it."""
    shares: dict[str, list[list[float | None]]] = {}
    falls: dict[str, list[tuple[float, float] | None]] = {}
    for trial in found.trials:
        counts = [None if count is None else count / found.sequences for count in trial.exact]
        shares.setdefault(trial.positions, []).append(counts)
        falls.setdefault(trial.positions, []).append(trial.fall and (trial.fall.nats, trial.fall.half))
    return Measured(found.config.training.max_steps, found.trained, shares, falls)


class TestWords:
    @pytest.mark.parametrize(
        ("found", "words"),
        [
            (
                made_up(1, 1, 1, 1, 0.43, 0, 0, 0),
                "Trained up to length 4, rotary reverses 1.00 of length 4 and 0.43 of length 5; "
                "none reverses length 8.",
            ),
            (made_up(1, 1, 1, 1, 0, 0, 0, 0), "Trained up to length 4, no encoding reverses length 5."),
            (
                made_up(1, 1, 1, 1, 1, 1, 1, 0.001),
                "reverses 1.00 of length 4 and 1.00 of length 5; rotary 0.0010 of length 8.",
            ),
            (
                made_up(1, 1, 1, 0.3, 0.2, encoding="none"),
                "a model without positions reverses 0.30 of length 4 and 0.20 of length 5.",
            ),
            (made_up(1, 1), "Trained up to length 4: no longer ones were measured."),
        ],
    )
    def test_the_title_says_what_was_measured(self, found: Lengths, words: str, heard: list[Claim]) -> None:
        assert words in measurement.headline(found)
        claims.judge(cast("Any", as_measured(found)), heard[0])

    @pytest.mark.parametrize(
        ("seeds", "words"),
        [
            # Of one seed what is written alike is level, of several what the intervals do not tell apart.
            ({"rotary": [0.431], "alibi": [0.434], "none": [0.4]},
             "rotary and ALiBi reverse about as much of length 5, up to 0.43; rotary and ALiBi "
             "up to 0.43 of length 8."),
            ({"rotary": [0.43], "alibi": [0.45]},
             "ALiBi reverses 1.00 of length 4 and 0.45 of length 5; ALiBi 0.45 of length 8."),
            ({"rotary": [0.4, 0.5, 0.6], "alibi": [0.45, 0.5, 0.6], "none": [0.1, 0.1, 0.12]},
             "rotary and ALiBi reverse about as much of length 5, up to 0.52; rotary and ALiBi "
             "up to 0.52 of length 8."),
            ({"rotary": [0.4, 0.41, 0.42], "alibi": [0.5, 0.51, 0.52]},
             "ALiBi reverses 1.00 of length 4 and 0.51 of length 5; ALiBi 0.51 of length 8."),
            ({"rotary": [0.5], "none": [0.5]},
             "rotary and a model without positions reverse about as much of length 5"),
            ({"rotary": [0.5], "alibi": [0.5], "none": [0.5], "learned": [0.5]},
             "4 encodings reverse about as much of length 5, up to 0.50; 4 encodings up to 0.50 of length 8."),
            ({"rotary": [0.0], "alibi": [0.0]}, "no encoding reverses length 5."),
        ],
    )  # fmt: skip
    def test_no_encoding_is_the_best_where_several_reverse_as_much(
        self, seeds: dict[str, list[float]], words: str, heard: list[Claim]
    ) -> None:
        trials = tuple(
            replace(made_up(1, 1, 1, 1, *[share] * 4, encoding=name).trials[0], seed=seed)
            for name, shares in seeds.items()
            for seed, share in enumerate(shares)
        )
        found = replace(made_up(*[1] * 8), encodings=tuple(seeds), seeds=(0, 1, 2), trials=trials)
        assert words in measurement.headline(found)
        claims.judge(cast("Any", as_measured(found)), heard[0])

    def test_a_mean_over_seeds_has_its_interval_and_one_seed_has_none(self) -> None:
        one = made_up(1, 1, 1, 0.9)
        assert measurement.within(one).endswith("in training (one seed): rotary 0.900.")
        trials = [made_up(1, 1, 1, share).trials[0] for share in (0.9, 0.8, 1)]
        several = replace(one, seeds=(0, 1, 2), trials=tuple(replace(t, seed=n) for n, t in enumerate(trials)))
        # Student's t of two degrees of freedom, 4.303, times 0.1 / √3
        said = "(mean over 3 seeds ± half its 95 % interval): rotary 0.900 ± 0.248."
        assert measurement.within(several).endswith(said)
        assert measurement.at_length(several, 4).endswith(said)
        another = replace(several.trials[2], positions="alibi")
        uneven = replace(several, encodings=("rotary", "alibi"), trials=(*several.trials[:2], another))
        assert "(mean over 1 or 2 seeds" in measurement.within(uneven)

    def test_many_seeds_are_named_by_the_first_and_the_last(self) -> None:
        for seeds, said in {tuple(range(64)): "seeds 0 to 63", (4,): "seed 4", (0, 1, 5): "seeds 0, 1 and 5"}.items():
            assert f"each encoding, {said};" in measurement.made(replace(made_up(1), seeds=seeds))

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
    def test_who_was_still_learning_is_said(self, falls: list[Fall | None], words: str, heard: list[Claim]) -> None:
        found = made_up(1, 1, 1, 1, 0)
        trials = tuple(replace(found.trials[0], seed=seed, fall=fall) for seed, fall in enumerate(falls))
        found = replace(found, seeds=(0, 1), trials=trials)
        assert words in measurement.unfinished(found)
        claims.judge(cast("Any", as_measured(found)), heard[0])


class TestFigures:
    LINES = (
        figures.Line("one", np.arange(1, 4), np.array([[1, 0.5, 0], [1, 0.3, 0.2]]), 0),
        figures.Line("two", np.arange(1, 4), np.array([[0.4, math.nan, math.nan]]), 1, "no vector for position 5"),
    )

    def test_thick_is_the_mean_and_thin_is_each_seed(self) -> None:
        figure = figures.exact_match_curves(self.LINES, trained=2, chance=0.1)
        lines = {trace.name: trace.y for trace in figure.data}
        np.testing.assert_allclose(lines["one"], [1, 0.4, 0.1], atol=1e-6)
        thin = np.array(lines["one, each seed"]).reshape(2, 4)[:, :3]
        np.testing.assert_allclose(thin, self.LINES[0].values, atol=1e-6)
        np.testing.assert_allclose(lines["chance"], [0.1, 0.01, 0.001], rtol=1e-5)
        assert any("two: no vector for position 5" in each.text for each in figure.layout.annotations)

    @pytest.mark.parametrize(("trained", "grounds"), [(2, [(0.5, 2.5)] * 2), (0, [])])
    def test_each_encoding_has_a_panel_and_the_ground_ends_where_training_did(self, trained: int, grounds) -> None:
        figure = figures.places_panels(self.LINES, trained=trained, chance=0.1)
        assert figure.layout.xaxis.domain[1] < figure.layout.xaxis2.domain[0]
        assert {trace.yaxis for trace in figure.data if trace.name == "two"} == {"y2"}
        assert [(shape.x0, shape.x1) for shape in figure.layout.shapes if shape.type == "rect"] == grounds


class TestPage:
    def test_its_numbers_are_the_file_s(self) -> None:
        app, values = page(), json.loads(lzma.decompress(SHIPPED.read_bytes()))
        spoken = next(each.value for each in app.caption if "the longest in training" in each.value)
        falling, sequences = [], values["sequences"]
        called = {"alibi": "ALiBi", "none": "no positions"}
        for name in ("learned", "sinusoidal", "rotary", "alibi", "none"):
            said = called.get(name, name)
            trials = [trial for trial in values["trials"] if trial["positions"] == name]
            falls = [trial["fall"] for trial in trials]
            noise = math.sqrt(sum(fall["half"] ** 2 for fall in falls)) / len(falls)
            falling += [said] * (sum(fall["nats"] for fall in falls) / len(falls) > max(noise, 0.001))
            if name == "learned":  # it has no vector for longer ones
                continue
            exact = np.array([trial["exact"] for trial in trials]) / sequences
            np.testing.assert_allclose(array(trace(app, "exact-match", said)["y"]), exact.mean(axis=0), atol=1e-6)
            right = np.mean([trial["right"][10] for trial in trials], axis=0) / sequences
            np.testing.assert_allclose(array(trace(app, "places", said)["y"]), right, atol=1e-6)
            shares = exact[:, 7]
            half = 1.998 * shares.std(ddof=1) / math.sqrt(64)  # Student's t of 63 degrees of freedom
            written = re.search(rf"{said} (\d\.\d+) ± (\d\.\d+)", spoken)
            assert written is not None
            assert [float(number) for number in written.groups()] == pytest.approx([shares.mean(), half], abs=0.0006)
        assert app.title[0].value.startswith("Trained up to length 8, ")
        listed = f"{', '.join(falling[:-1])} and {falling[-1]}"
        words = f"Each encoding got 500 steps. At the end the loss was still falling for {listed}: more"
        assert any(caption.value.startswith(words) for caption in app.caption)

    @pytest.mark.daily(1)
    @pytest.mark.parametrize("content", ["{", None])
    def test_without_a_file_it_says_so_and_offers_to_make_one(self, content, tmp_path: Path, monkeypatch) -> None:
        path = tmp_path / "lengths.json"
        if content is not None:
            path.write_text(content)
        monkeypatch.setitem(measurement.FILES, "shipped", path)
        app = open_page("lengths")
        assert any("cannot be shown" in error.value for error in app.error)
        assert any(button.label == "Measure again" for button in app.button)

    def test_a_link_chooses_one_s_own_and_falls_back_where_there_is_none(self, tmp_path: Path, monkeypatch) -> None:
        own = tmp_path / "lengths.json"
        monkeypatch.setitem(measurement.FILES, "own", own)
        app = open_page("lengths", measurement="own", longer="190")
        assert any("own" in warning.value for warning in app.warning)
        assert "up to length 8" in app.title[0].value
        made_up(1, 1, 1, 1, 0, 0, 0, 0).save(own)
        assert "up to length 4" in open_page("lengths", measurement="own").title[0].value

    def test_the_bag_is_what_it_is_said_to_be(self) -> None:
        """The permutation test by hand, and the accuracy below the ceiling."""
        bars = trace(page(), "bag", "measured")
        low, _ = wilson(np.rint(array(bars["y"]) * no_positions.SEQUENCES).astype(int), no_positions.SEQUENCES, 4.0)
        assert (low <= bag_ceiling(8, 10)).all()
        first, other = (3, 1, 4, 1, 5, 9, 2, 6), (6, 2, 9, 5, 1, 4, 1, 3)
        for positions in no_positions.POSITIONS:
            model: Transformer = quick_training.trained(no_positions.small(positions)).model
            with torch.no_grad():
                says = model(torch.tensor([[*first, 10], [*other, 10]]))[:, -1]
            found, moved = no_positions.turned(positions, first, other), float((says[0] - says[1]).abs().max())
            assert (found.said, found.said_other) == tuple(says.argmax(dim=-1).tolist())
            assert found.moved == pytest.approx(moved, abs=1e-5)
            assert moved < 1e-4 if positions == "none" else moved > 1
        assert 0 <= no_positions.carried(first, (5, 2, 7, 0, 1, 6, 4, 3)) < 1e-4

    @pytest.mark.parametrize(("positions", "moves"), [("none", True), ("rotary", False)])
    def test_only_without_positions_do_outputs_move_along(
        self, positions: str, moves: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The same comparison sees a difference where there is one: it is no check that cannot fail."""
        config = RunConfig(task=TaskConfig(task="reverse-aligned"), model=ModelConfig(positions=positions))
        monkeypatch.setattr(quick_training, "trained", lambda *_: SimpleNamespace(model=build(config).eval()))
        monkeypatch.setattr(no_positions, "aligned", lambda: config)
        carried = no_positions.carried((3, 1, 4, 1), (2, 0, 3, 1))
        assert carried < 1e-4 if moves else carried > 1e-2

    def test_the_race_is_each_training_s_own_course(self, monkeypatch) -> None:
        monkeypatch.setattr(race, "RACE_STEPS", 10)
        monkeypatch.setattr("transformer.experiments.lengths.in_order", lambda: ("learned", "none"))
        lines = drawn(open_page("lengths", raced="1"))["race"]["data"]
        for positions, line in zip(("learned", "none"), lines, strict=True):
            config = race.racing(positions)
            steps = [s for s in train(build(config), config) if s.accuracy is not None]
            assert array(line["x"]).tolist() == [s.step for s in steps]
            np.testing.assert_allclose(array(line["y"]), [s.accuracy[8:].mean() for s in steps], atol=1e-6)

    def test_an_encoding_of_a_stranger_is_raced_under_its_title_and_looks_like_no_other(self, monkeypatch) -> None:
        strangers.lend(monkeypatch, PLUG_INS, *strangers.ENCODINGS[:3])
        racers = [race.Racer(name, (5,), (0.5,), False) for name in in_order()]
        assert [each.positions for each in racers][:5] == ["learned", "sinusoidal", "rotary", "alibi", "none"]
        lines = [
            figures.Line(race.raced_name(each), np.array([5]), np.array([[0.5]]), measurement.place_of(each.positions))
            for each in racers
        ]
        drawn_lines = figures.race_curves(lines, chance=0.1, last=5).data
        assert len({(line.line.color, line.line.dash, line.marker.symbol) for line in drawn_lines}) == len(racers)
        assert {line.name for line in drawn_lines} >= {"relative 0.50", "random 0.50", "half-turned 0.50", "ALiBi 0.50"}

    def test_no_two_of_two_dozen_encodings_look_alike(self) -> None:
        lines = [figures.Line(f"{i}", np.array([5]), np.array([[0.5]]), i) for i in range(24)]
        made = figures.race_curves(lines, chance=0.1, last=5).data
        looks = {(line.line.color, line.line.dash, line.marker.symbol) for line in made}
        assert len(looks) == 24

    def test_the_race_says_who_was_still_learning_of_those_that_did_not_solve_it(self, heard: list[Claim]) -> None:
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
        near = [race.Racer("alibi", (600,), (0.998,), False, level), race.Racer("none", (3,), (0.1,), False, None)]
        assert race.race_sentence(near) == (
            "No encoding solves it. Not solved: ALiBi 0.998 after 600, no positions 0.10 after 3 steps."
        )
        for claim, drawn_ in zip(heard, [racers, [racers[0], racers[2]], racers[:1], near], strict=True):
            made_up = [
                Raced(
                    measurement.called(each.positions),
                    each.steps[-1],
                    each.shares[-1],
                    each.solved,
                    each.fall and each.fall.falling,
                )
                for each in drawn_
            ]
            claims.judge(cast("Any", made_up), claim)

    def test_measuring_anew_says_why_it_cannot_begin_and_the_shipped_one_stays_until_there_is_another(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[Path] = []

        def start(_: measurement.Measuring, path: Path) -> None:
            asked.append(path)
            if len(asked) == 1:
                raise OSError(28, "no room")

        monkeypatch.setitem(measurement.FILES, "own", tmp_path / "own.json")
        monkeypatch.setattr(measurement.Measuring, "running", property(lambda _: len(asked) > 1))
        monkeypatch.setattr(measurement.Measuring, "start", start)
        app = press(open_page("lengths"), "Measure again")
        assert any("did not start: no room" in warning.value for warning in app.warning)
        press(app, "Measure again")
        assert asked == [tmp_path / "own.json"] * 2
        assert [button.label for button in app.button if "easur" in button.label] == ["Stop measuring"]
        assert "up to length 8" in app.title[0].value


NAMES = {"learned": "Learned", "sinusoidal": "Sinusoidal", "rotary": "Rotary", "alibi": "ALiBi", "none": "No positions"}


def rows_of(positions: str) -> list[dict[str, str]]:
    with (ENCODINGS / "results.csv").open() as file:
        return [row for row in csv.DictReader(file) if row["positions"] == positions]


class TestPopulation:
    @pytest.mark.parametrize("positions", NAMES)
    def test_what_is_said_of_each_encoding_is_counted_in_the_table(self, positions: str) -> None:
        rows = rows_of(positions)
        solved = sorted(int(row["step"]) for row in rows if row["solved"] == "yes")
        said = population.sentence(population.encodings())
        assert len(rows) == 64
        assert f"{NAMES[positions]}: {len(solved)} of 64 seeds" in said
        if len(solved) == 64:
            assert re.search(rf"{NAMES[positions]}: 64 of 64 seeds, after {statistics.median(solved):g} steps", said)
        else:
            assert f"{NAMES[positions]}: {len(solved)} of 64 seeds within 600 steps" in said
            assert all(row["step"] == "600" for row in rows if row["solved"] == "no")

    def test_a_line_is_the_share_of_the_second_half_at_each_kept_step(self) -> None:
        each = next(found for found in population.encodings() if found.positions == "rotary")
        line, member, frame = population.line(each), 5, 7
        places = [place for place, group in enumerate(each.scenes.groups) if group == "second half"]
        right = sum(int(each.scenes.right[member, frame, place]) for place in places)
        assert line.values[member, frame] == pytest.approx(right / (len(places) * each.scenes.sequences))
        assert line.x.tolist() == each.scenes.steps.tolist()
        assert line.name == f"rotary {sum(row['solved'] == 'yes' for row in rows_of('rotary'))}/64"

    def test_the_page_draws_all_seeds_and_says_how_many(self) -> None:
        assert any("over 64 seeds?" in each.value for each in page().markdown)
        thick = [each for each in drawn(page())["seeds"]["data"] if each.get("showlegend") is not False]
        assert len(thick) == 5
        for line, each in zip(thick, population.encodings(), strict=True):
            assert array(line["y"]) == pytest.approx(population.line(each).values.mean(axis=0), abs=1e-6)
        assert population.sentence(population.encodings()) in captions(page())

    def test_without_the_population_the_page_goes_without(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(population, "FOLDER", tmp_path)
        assert population.encodings() == []
        assert "seeds" not in drawn(open_page("lengths"))
        (tmp_path / "results.csv").write_text("nonsense")
        (tmp_path / "scenes.npz").write_bytes(b"nonsense")
        assert population.encodings() == []

    def test_what_could_not_be_read_for_a_moment_is_not_remembered(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        folder = tmp_path / "encodings"
        folder.symlink_to(ENCODINGS)
        monkeypatch.setattr(population, "FOLDER", folder)
        with monkeypatch.context() as full:
            full.setattr(population, "scenes", lambda *_: None)
            assert population.encodings() == []
        assert len(population.encodings()) == 5
