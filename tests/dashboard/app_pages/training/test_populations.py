"""The page of populations: its sentences, its pictures and its film, against counts made here."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.training.populations import film, measured, words
from dashboard.app_pages.training.populations.figures.band import accuracy_band
from dashboard.app_pages.training.populations.figures.kinds import kinds_heatmap
from dashboard.app_pages.training.populations.figures.phase import phase_heatmap
from dashboard.app_pages.training.populations.figures.steps import Seeds, steps_dots, steps_height
from tests.kit import claims
from tests.kit.claims.laws.training import POPULATIONS, Compared, Outcomes, Shares
from tests.kit.experiments.populations import ended, made_up, trained
from tests.kit.pages import array, figures, link, open_page, shown, staged, trace
from transformer.analysis.film.film import Film
from transformer.experiments.populations.plan import Member
from transformer.experiments.populations.scenes import scenes
from transformer.experiments.populations.statistics import frequencies
from transformer.experiments.populations.table import Population, Row
from transformer.foundation.claims import Claim
from transformer.foundation.program import program

TWENTIES = [30, 20, 22, 24, 26, 28]
FEW = "fewer than 6 seeds have no 95 % interval of the median"
TWO = {"positions": "learned,none", "n-heads": "1,4"}


def steps_of(member: Member) -> int | None:
    """Learned positions solve it, the more heads the sooner; without positions only every fourth seed does."""
    if member.settings["positions"] == "none":
        return None if member.seed % 4 else 40 + member.seed
    return 20 // member.settings["n_heads"] + member.seed  # type: ignore[operator]


def usual(member: Member) -> Row:
    steps = steps_of(member)
    kind = "expected" if member.settings["positions"] == "learned" and member.seed != 3 else "mixed"
    return ended(member, steps, right=90 + member.seed if steps else 50, kinds=kind)


def failed(member: Member) -> Row:
    return Row.failed(member.name, 7, f"no number at step {member.seed}")


def loaded(folder: Path) -> measured.Counted:
    return measured.load(folder, measured.stamp(folder))


class TestSentences:
    """For rows that are made up: medians and intervals by hand."""

    def one(self, root: Path, steps: list[int | None], seeds: str = "0-7") -> measured.Combination:
        def row(member: Member) -> Row | None:
            return ended(member, steps[member.seed]) if member.seed < len(steps) else None

        made_up(root / "p", seeds, {"max-steps": "60"}, row)
        return loaded(root / "p").combinations[0]

    # Of 10 values the second and the ninth hold the median: 2 · (1 + 10) / 1024 = 0.021 lies outside. Of six values all
    # hold it but in 2 of 64 cases, of five they do not in 2 of 32.
    @pytest.mark.parametrize(
        ("steps", "title"),
        [
            ([*TWENTIES, 32, 34, 36, 38], "10 of 10 seeds, after 29 steps in the median (95 % interval 22 to 36)."),
            (
                [*TWENTIES, 32, 35, None, None],
                "8 of 10 seeds, after 29 steps in the median (95 % interval 22 to more than 60 steps).",
            ),
            (
                [30, 20, 22, *[None] * 7],
                "3 of 10 seeds within 60 steps; the median is more than that (95 % interval 22 to more than 60 steps).",
            ),
            (
                [30, *[None] * 9],
                "1 of 10 seeds within 60 steps; the median is more than that (95 % interval: more than 60 steps).",
            ),
            ([None] * 10, "0 of 10 seeds within 60 steps."),
            ([21, 22, 23, 24, 26, 27], "6 of 6 seeds, after 23.5 steps in the median (95 % interval 21 to 27)."),
            ([21, 22, 23, 24, 26], f"5 of 5 seeds, after 23 steps in the median ({FEW})."),
            ([21], f"1 of 1 seed, after 21 steps in the median ({FEW})."),
        ],
    )
    def test_the_title_counts_seeds(self, root: Path, steps: list[int | None], title: str) -> None:
        each = self.one(root, steps, f"0-{len(steps) - 1}")
        assert words.headline(each) == f"Solved from {title}"
        share = f"{sum(map(bool, steps)) / len(steps):.2f}"
        assert words.share_sentence(each).startswith(f"The share of seeds that is solved is {share}, over {len(steps)}")

    def test_what_is_said_of_outcomes_drawn_at_random_is_true_of_them(self, root: Path, heard: list[Claim]) -> None:
        rng = np.random.default_rng(0)
        for number in range(60):
            planned = int(rng.integers(1, 13))
            likely = ((1, 0, 0, 0), (0, 0, 0, 1), (0.6, 0.2, 0.2, 0), (0.5, 0.2, 0.1, 0.2), (0, 0, 1, 0))[number % 5]
            kinds = rng.choice(4, planned, p=likely)
            steps = rng.integers(1, 60, planned).tolist()

            def row(member: Member, kinds: np.ndarray = kinds, steps: list[int] = steps) -> Row | None:
                solved, unsolved, broken = (kinds[member.seed] == kind for kind in (0, 1, 2))
                if broken:
                    return failed(replace(member, seed=member.seed % 3))
                return ended(member, steps[member.seed] if solved else None) if solved or unsolved else None

            folder = root / f"{number}"
            made_up(folder, f"0-{planned - 1}", {"max-steps": "60"}, row)
            (each,) = loaded(folder).combinations
            words.headline(each)
            words.share_sentence(each)
            ends = [steps[seed] for seed in range(planned) if kinds[seed] == 0]
            reasons = tuple(f"no number at step {seed % 3}" for seed in range(planned) if kinds[seed] == 2)
            for said in heard:
                claims.judge(Outcomes(planned, 60, tuple(ends), int((kinds == 1).sum()), reasons), said)
            heard.clear()
        assert all(law.met for name in ("headline", "share_sentence") for law in claims.LAWS[f"{POPULATIONS}{name}"])

    def test_what_has_not_ended_is_no_failure_and_may_still_come(self, root: Path) -> None:
        each, found = self.one(root, [30, 20, None]), loaded(root / "p")
        assert words.headline(each).startswith("So far solved from 2 of 3 seeds, after 30 steps in the median")
        assert words.headline(each).endswith("; 5 of 8 have not ended.")
        assert "these numbers will change" in words.share_sentence(each)
        assert words.progress(found).startswith("3 of 8 trainings of this population have ended, ")
        assert measured.grows(found)

    def test_of_nothing_that_has_ended_there_is_no_share(self, root: Path) -> None:
        assert words.share_sentence(self.one(root, [])) == ""

    def test_failures_are_told_apart_and_not_counted(self, root: Path) -> None:
        def row(member: Member) -> Row:
            if member.settings["n_heads"] == 3:
                return Row.failed(member.name, 0, "d_model (16) must be divisible by n_heads (3)")
            return ended(member, 20) if member.seed < 2 else failed(member)

        made_up(root / "p", "0-4", {"n-heads": "1,3", "max-steps": "60"}, row)
        some, none = loaded(root / "p").combinations
        assert words.headline(some).startswith("Solved from 2 of 2 seeds, after 20 steps")
        said = "3 trainings failed and are not counted: no number at step 2, and 2 other reasons."
        assert words.share_sentence(some).endswith(said)
        assert words.headline(none) == "No training with 3 heads could be finished: 5 failed."
        assert "d_model (16) must be divisible by n_heads (3)" in words.share_sentence(none)

    def test_settings_in_words(self) -> None:
        assert words.phrase({}) == ""
        assert words.phrase({"positions": "none", "n_heads": 1}) == " with no positions and 1 head"
        assert words.phrase({"positions": "alibi", "n_layers": 2, "d_model": 32}) == (
            " with ALiBi positions, 2 layers and d_model 32"
        )
        assert words.called({"learning_rate": 0.005, "norm": "pre"}) == "learning rate 0.005, norm pre"
        assert [words.setting_title(name) for name in ("n_heads", "d_model", "mask")] == ["Heads", "d_model", "Mask"]

    def test_accuracy_is_said_of_the_last_part(self, root: Path) -> None:
        groups = ("first half",) * 7 + ("",) + ("second half",) * 8
        assert words.band_sentence(self.one(root, [20] * 10, "0-9").rows, groups) == (
            "In the median of 10 seeds 0.90 of the second half is right (95 % interval 0.900 to 0.900); all 10 seeds "
            "lie between 0.90 and 0.90."
        )

    def test_level_combinations_are_said_to_be_level(self, root: Path) -> None:
        def row(member: Member) -> Row:
            return ended(member, 20 if member.settings["n_layers"] in (1, 2) else None)

        made_up(root / "p", "0-5", {"n-layers": "1,2,3,4,6"}, row)
        said = words.steps_sentence(loaded(root / "p").combinations)
        assert said.startswith("Quickest: 1 layer (1 other of 5 cannot be told from it), 6 of 6 seeds, after 20 steps")
        assert said.endswith("Slowest: 3 layers (2 others of 5 cannot be told from it), 0 of 6 seeds within 60 steps.")

    def test_what_is_said_of_combinations_drawn_at_random_is_true_of_them(self, root: Path, heard: list[Claim]) -> None:
        rng = np.random.default_rng(1)
        for number in range(60):
            planned, many = int(rng.choice([1, 3, 7, 12])), int(rng.choice([1, 2, 5, 6]))
            likely = ((1, 0, 0), (0, 0, 1), (0.5, 0.4, 0.1), (0.3, 0.7, 0), (0, 1, 0))[number % 5]
            steps = rng.integers(20, 24 if number % 2 else 50, (many, planned))
            kinds = rng.choice(3, (many, planned), p=likely)
            if number % 7 == 0:
                steps, kinds = steps * 0 + 20, kinds * 0

            def row(member: Member, steps: np.ndarray = steps, kinds: np.ndarray = kinds) -> Row | None:
                at = int(member.settings.get("n_layers", 1)) - 1, member.seed
                if kinds[at] == 2:
                    return None
                return ended(member, int(steps[at]) if kinds[at] == 0 else None)

            layers = ",".join(map(str, range(1, many + 1)))
            made_up(root / f"{number}", f"0-{planned - 1}", {"n-layers": layers, "max-steps": "60"}, row)
            combinations = loaded(root / f"{number}").combinations
            outcomes = {
                words.called(each.settings): Outcomes(
                    planned,
                    60,
                    tuple(int(step) for step, kind in zip(steps[at], kinds[at], strict=True) if kind == 0),
                    int((kinds[at] == 1).sum()),
                )
                for at, each in enumerate(combinations)
            }
            for by_steps in (True, False):
                heard.clear()
                words.phase_sentence(combinations, "steps" if by_steps else "share")
                if by_steps:
                    words.steps_sentence(combinations)
                for said in heard:
                    claims.judge(cast("Any", Compared(outcomes, by_steps)), said)
        assert all(law.met for name in ("steps_sentence", "phase_sentence") for law in claims.LAWS[POPULATIONS + name])

    def test_what_is_said_of_shares_and_kinds_drawn_at_random_is_true_of_them(self, heard: list[Claim]) -> None:
        rng = np.random.default_rng(2)
        member = Member("one", {}, 0, None)
        for number in range(80):
            seeds = int(rng.choice([1, 4, 8, 20, 30]))
            most = (100, 1, 20)[number % 3]
            rights = rng.integers(100 - most, 101, seeds).tolist()
            likely = ((0.6, 0.2, 0.2), (1, 0, 0))[number % 4 == 0]
            named = rng.choice(["mixed", "expected", "uniform"], (seeds, 2), p=likely).tolist()
            heads = ("decoder.0.self_attention.0", "decoder.0.self_attention.1")
            rows = [
                replace(ended(member, 20, right=right), kinds=dict(zip(heads, kinds, strict=True)))
                for right, kinds in zip(rights, named, strict=True)
            ]
            heard.clear()
            words.band_sentence(rows, ("",) * 7 + ("second half",) * 9)
            claims.judge(cast("Any", Shares("second half", tuple(right / 100 for right in rights))), heard[-1])
            words.kinds_sentence(frequencies(rows))
            claims.judge(cast("Any", tuple(row.kinds for row in rows)), heard[-1])
        words.kinds_sentence([])
        claims.judge(cast("Any", ()), heard[-1])
        assert all(law.met for name in ("band_sentence", "kinds_sentence") for law in claims.LAWS[POPULATIONS + name])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The usual population of ten seeds."""
    root = tmp_path_factory.mktemp("usual")
    made_up(root / "p", "0-9", TWO, usual)
    return root


class TestPage:
    """Of the usual population: the page is opened once for all who only read it."""

    @pytest.fixture
    def page(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
        monkeypatch.setattr("dashboard.models.menu.ROOT", folder)
        return self.opened(folder)

    @staticmethod
    @cache
    def opened(folder: Path) -> AppTest:
        return open_page("populations", combination="positions=learned,n_heads=4")

    def test_its_pictures_are_the_table_s(self, page: AppTest, folder: Path) -> None:
        title = shown(page.title[0].value)
        assert title.startswith("Solved from 10 of 10 seeds, after 9.5 steps in the median (95 % ")
        assert title.endswith(", with learned positions and 4 heads.")
        with (folder / "p" / "results.csv").open() as file:
            rows = list(csv.DictReader(file))
        beyond = max(int(row["step"]) for row in rows if row["solved"] == "yes")
        for positions, heads, called in (
            ("learned", "1", "learned positions, 1 head"),
            ("none", "4", "no positions, 4 heads"),
        ):
            own = [row for row in rows if (row["positions"], row["n_heads"]) == (positions, heads)]
            dots = trace(page, "populations-steps", called)["x"]
            solved = [int(row["step"]) for row in own if row["solved"] == "yes"]
            assert sorted(x for x in dots if x <= beyond) == sorted(solved)
            assert sum(x > beyond for x in dots) == len(own) - len(solved)
        own = [row for row in rows if (row["positions"], row["n_heads"]) == ("learned", "4")]
        correct = np.array([[int(count) for count in row["correct"].split()] for row in own]) / 100
        middle = array(trace(page, "populations-accuracy", "median")["y"])
        np.testing.assert_allclose(middle, np.median(correct, axis=0), atol=1e-6)
        band = array(trace(page, "populations-accuracy", "band")["y"])
        np.testing.assert_allclose(band, [*correct.max(axis=0), *correct.min(axis=0)[::-1]], atol=1e-6)
        cells = array(trace(page, "populations-kinds", "share of seeds")["z"])
        np.testing.assert_allclose(cells, [[0.0, 1.0], [0.9, 0.1]], atol=1e-6)
        assert figures(page)["populations-kinds"]["layout"]["xaxis"]["ticktext"] == ["expected", "mixed"]
        phase = trace(page, "populations-phase", "value")
        np.testing.assert_allclose(array(phase["z"]), [[1.0, 1.0], [0.3, 0.3]], atol=1e-6)
        assert "10 seeds" in phase["hovertext"][1][0]
        assert "95 % interval" in phase["hovertext"][1][0]

    def test_chance_and_ceiling_stand_beside_accuracy(self, page: AppTest) -> None:
        said = [note["text"] for note in figures(page)["populations-accuracy"]["layout"]["annotations"]]
        assert said == ["chance<br>0.10", "ceiling"]
        ceiling = array(trace(page, "populations-accuracy", "ceiling")["y"])
        np.testing.assert_allclose(ceiling, [0.1] * 7 + [1.0] * 9, atol=1e-6)

    def test_the_table_has_a_row_a_member(self, page: AppTest) -> None:
        table = page.dataframe[0].value
        assert list(table["seed"]) == [*range(10)] * 4
        assert list(table["positions"]) == ["learned"] * 20 + ["none"] * 20
        assert list(table["exact"])[:3] == [0.9, 0.91, 0.92]
        assert set(table["head"]) == {"1.0"}

    def test_the_colour_may_be_the_median_of_the_steps(self, page: AppTest) -> None:
        app = open_page("populations", phase_colour="steps", phase_across="positions")
        values = array(trace(app, "populations-phase", "value")["z"])
        np.testing.assert_allclose(values, [[24.5, math.nan], [9.5, math.nan]])
        texts = {
            (x, y): text
            for each in figures(app)["populations-phase"]["data"]
            if each["name"] == "numbers"
            for x, y, text in zip(each["x"], each["y"], each["text"], strict=True)
        }
        assert texts == {(0, 0): "24.5", (0, 1): "9.5", (1, 0): "> 60", (1, 1): "> 60"}

    def test_a_menu_chooses_the_population_and_a_control_the_combination(self, root: Path) -> None:
        made_up(root / "one", "0-9", TWO, usual)
        made_up(root / "two", "0-3", TWO, usual)
        app = open_page("populations", population="two", combination="positions=none,n_heads=4")
        assert "of 4 seeds" in app.title[0].value
        app.selectbox(key="control-population").set_value("one").run()
        assert "of 10 seeds" in app.title[0].value
        assert link(app) == {"run": "compiled"}
        app.button_group(key="control-combination-positions").set_value("none").run()
        assert link(app)["combination"] == "positions=none,n_heads=1"
        assert shown(app.title[0].value).startswith("Solved from 3 of 10 seeds within 60 steps; ")

    def test_of_many_combinations_the_neighbours_are_shown(self, root: Path) -> None:
        made_up(root / "p", "0-1", {"n-layers": "1,2,3,4,5,6", "n-heads": "1,2,4"}, lambda member: ended(member, 20))
        app = open_page("populations", combination="n_layers=2,n_heads=4")
        names = figures(app)["populations-steps"]["layout"]["yaxis"]["ticktext"]
        assert len(names) == 6 + 3 - 1
        assert names.count("<b>2 layers,<br>4 heads</b>") == 1
        assert any("Shown are 8 of 18 combinations" in caption.value for caption in app.caption)

    def test_where_one_setting_varies_there_is_no_phase(self, root: Path) -> None:
        made_up(root / "p", "0-2", {"n-heads": "1,4"}, lambda member: ended(member, 20))
        assert "populations-phase" not in figures(open_page("populations", phase_across="n_heads"))

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        ("query", "notices", "kept"),
        [
            (
                {"population": "../..", "combination": "<script>alert(1)</script>"}
                | {"phase_across": "seed", "phase_up": "d_model", "phase_colour": "red"},
                5,
                {},
            ),
            ({"phase_across": "positions", "phase_up": "positions"}, 1, {"phase_across": "positions"}),
        ],
    )
    def test_nonsense_in_a_link_falls_back(
        self, page: AppTest, query: dict[str, str], notices: int, kept: dict[str, str]
    ) -> None:
        app = open_page("populations", **query)
        assert "learned positions and 1 head" in app.title[0].value
        assert len(app.warning) == notices
        assert link(app) == {"run": "compiled", **kept}


class TestStates:
    def test_without_a_population_it_says_how_one_is_made(self, root: Path) -> None:
        app = open_page("populations")
        assert app.title[0].value == "No population has been trained here yet."
        assert app.code[0].value.startswith(f"{program()} sweep --seeds 0-63")

    @pytest.mark.parametrize(
        ("row", "title"),
        [
            (lambda member: None, "None of the 4 trainings with learned positions and 1 head has ended yet."),
            (
                lambda member: usual(member) if member.seed < 1 else None,
                "So far solved from 1 of 1 seed, after 20 steps",
            ),
            (failed, "No training with learned positions and 1 head could be finished: 4 failed."),
        ],
    )
    def test_as_much_is_shown_as_has_ended(self, root: Path, row: Any, title: str) -> None:
        made_up(root / "p", "0-3", TWO, row)
        app = open_page("populations")
        assert app.title[0].value.startswith(title)
        assert ("populations-accuracy" in figures(app)) == title.startswith("So far")
        assert "populations-phase" in figures(app)
        assert not app.error

    @pytest.mark.parametrize(("row", "wait"), [(usual, 0), (lambda member: None, measured.GROWS + 1)])
    def test_one_that_is_complete_or_rests_does_not_grow(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, row: Any, wait: float
    ) -> None:
        made_up(root / "p", "0-3", TWO, row)
        now = measured.stamp(root / "p")[1] + wait
        monkeypatch.setattr(measured, "time", SimpleNamespace(time=lambda: now))
        assert not measured.grows(loaded(root / "p"))

    @pytest.mark.daily(1)
    @pytest.mark.parametrize("content", ['{"format": "attention-lab sweep/1"}', "{"])
    def test_a_damaged_plan_is_a_sentence(self, root: Path, content: str) -> None:
        made_up(root / "p", "0-3", TWO, usual)
        made_up(root / "q", "0-3", TWO, usual)
        (root / "p" / "sweep.json").write_text(content)
        app = open_page("populations")
        assert app.title[0].value == "This population cannot be shown."
        assert len(app.error) == 1
        app.selectbox(key="control-population").set_value("q").run()
        assert "of 4 seeds" in app.title[0].value

    def test_a_folder_s_name_is_meant_as_it_stands(self, root: Path) -> None:
        made_up(root / "*x* :red[y]", "0-3", TWO, usual)
        captions = [shown(caption.value) for caption in open_page("populations").caption]
        assert any("is the file results.csv in the folder *x* :red[y]." in caption for caption in captions)
        assert not any(str(root) in caption for caption in captions)


@pytest.fixture(scope="module")
def population(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Population]:
    folder = tmp_path_factory.mktemp("runs") / "small"
    return folder, trained(folder, "0-1", {"length": "2", "n-heads": "1,2", "d-model": "8", "max-steps": "2"})


class TestFilm:
    """Of a small population that is really trained."""

    @pytest.fixture(autouse=True)
    def _its_root(self, population: tuple[Path, Population], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dashboard.models.menu.ROOT", population[0].parent)

    def test_it_shows_the_working_head_of_each_member(self, population: tuple[Path, Population]) -> None:
        folder, found = population
        combination = loaded(folder).combinations[1]
        taken = scenes(folder, found, combination.settings)
        assert taken is not None
        reel = film.reel_of(taken, combination, "2-seed-1")
        assert [track.name for track in reel.tracks] == ["seed 0", "seed 1"]
        assert reel.focus == 1
        assert len({(track.row, track.column) for track in reel.tracks}) == 2
        losses, right = [], np.zeros(len(reel.names))
        for track, member in zip(reel.tracks, combination.members, strict=True):
            shares = json.loads((folder / member.name / "row.json").read_text())["shares"]
            own = Film.load(folder / member.name / "film.npz")
            site, index = max(shares, key=shares.__getitem__).rsplit(".", 1)
            np.testing.assert_array_equal(track.patterns[-1], own.readings[site].levels[-1, int(index)])
            assert track.called == f"Seed {member.seed}, head {site.split('.')[1]}.{index}"
            lines = (folder / member.name / "metrics.jsonl").read_text().splitlines()
            losses.append([json.loads(line)["loss"] for line in lines])
            right += own.correct[-1]
        np.testing.assert_allclose(reel.loss, np.mean(losses, axis=0))
        np.testing.assert_allclose(reel.accuracy[-1], right / (2 * own.sequences))
        assert set(reel.sequences) == {2 * own.sequences}

    def test_what_a_table_and_a_film_do_not_share_is_not_shown(self, population: tuple[Path, Population]) -> None:
        counted = loaded(population[0])
        without = replace(counted.combinations[1], rows=counted.combinations[1].rows[:1])
        assert measured.film(counted, without) is None

    def test_the_page_plays_it_and_a_tick_opens_a_member_with_its_working_head(
        self, population: tuple[Path, Population]
    ) -> None:
        app = open_page("populations", combination="n_heads=2")
        header = staged(app)
        assert [panel["name"] for panel in header["panels"]] == ["seed 0", "seed 1"]
        assert header["chance"] == pytest.approx(0.1)
        assert len(header["ceiling"]) == 4
        assert None not in header["ceiling"]
        assert header["focus"] is None
        rows = population[1].rows
        member = list(rows)[3]
        tick(app, 3)
        assert link(app) == {"run": f"small/{member}", "head": rows[member].working, "combination": "n_heads=2"}
        assert [info.value for info in app.info] == [f"Every page shows {member} now."]
        assert staged(app)["focus"] == 1

    def test_one_without_weights_is_trained_again(self, population: tuple[Path, Population], tmp_path: Path) -> None:
        folder, found = population
        member = next(iter(found.rows))
        (folder / member / "snapshots").rename(tmp_path / "away")
        try:
            app = tick(open_page("populations"), 0)
        finally:
            (tmp_path / "away").rename(folder / member / "snapshots")
        assert link(app) == {"run": f"small/{member}", "head": found.rows[member].working}
        assert app.info[0].value == (
            f"Every page shows {member} now. Its weights are not kept: it is trained again, from its seed."
        )


def tick(app: AppTest, row: int) -> AppTest:
    """What the browser says of a table of which one row was ticked."""
    states = app._tree.get_widget_states()
    selection = {"selection": {"rows": [row], "columns": [], "cells": []}}
    states.widgets.add(id=app.dataframe[0].proto.id, string_value=json.dumps(selection))
    app._run(states)
    assert not app.exception
    return app


class TestFigures:
    ROWS = (
        Seeds("one", (0, 1, 2, 3), np.array([20.0, 20.0, 20.0, math.inf]), 20.0, math.nan, math.nan, "of one"),
        Seeds("two", tuple(range(12)), np.full(12, math.inf), math.inf, math.inf, math.inf, "of two"),
    )

    def test_no_dot_stands_on_another_and_each_has_its_place(self) -> None:
        drawn = steps_dots(self.ROWS, unsolved="not solved in 60 steps")
        for row, dots in zip(self.ROWS, (drawn.data[0], drawn.data[2]), strict=True):
            assert len(set(zip(dots.x, dots.y, strict=True))) == len(row.seeds)
            x, solved = np.array(dots.x), np.isfinite(row.steps)
            np.testing.assert_array_equal(x[solved], row.steps[solved])
            assert (x[~solved] > 20).all()
        assert max(drawn.layout.xaxis.tickvals) <= 20  # all ticks are steps
        assert steps_dots(self.ROWS, unsolved="not solved in 60 steps") == drawn
        assert steps_height(self.ROWS) > steps_height(self.ROWS[:1])

    def test_the_median_lies_on_its_interval_and_beyond_the_mark_where_nobody_knows_it(self) -> None:
        drawn = {each.name: each for each in steps_dots(self.ROWS, unsolved="x").data}
        assert list(drawn["one, median"].x) == [20.0]
        assert "one, 95 % interval of the median" not in drawn
        assert drawn["two, median"].marker.symbol == "triangle-right"
        assert drawn["two, median"].x[0] > 20

    def test_where_all_are_solved_there_is_no_mark(self) -> None:
        layout = steps_dots([Seeds("a", (0,), np.array([3.0]), 3.0, math.nan, math.nan, "a")], unsolved="x").layout
        assert (layout.annotations, layout.shapes) == ((), ())

    def test_a_band_without_a_ceiling_has_none(self) -> None:
        band = np.array([[0.5, 0.6], [0.4, 0.5], [0.6, 0.7]])
        drawn = accuracy_band(band, np.full(2, math.nan), 0.1, ("a", "b"), ("", ""), seeds=3, within="all 3 seeds")
        assert [each.name for each in drawn.data] == ["band", "median"]

    def test_a_cell_of_kinds_says_its_interval(self) -> None:
        one = np.array([[0.5]])
        drawn = kinds_heatmap(one, one - 0.2, one + 0.2, ("layer 0",), ("expected",), [["a\nb"]])
        assert drawn.data[1].text == ("0.50<br>0.30–0.70",)
        assert drawn.data[0].hovertext == (["a<br>b"],)

    def test_the_chosen_cell_is_outlined_and_what_has_no_value_is_grey(self) -> None:
        values, texts = np.array([[0.5, math.nan]]), np.array([["0.50", "–"]], dtype=object)
        axes = ("heads", ("1", "2")), ("layers", ("1",))
        drawn = phase_heatmap(values, texts, [["a", "b"]], *axes, ends=(0.0, 1.0), chosen=(0, 1))
        (outline,) = drawn.layout.shapes
        assert (outline.x0, outline.x1, outline.y0, outline.y1) == (0.5, 1.5, -0.5, 0.5)
        assert [each.name for each in drawn.data] == ["value", "without a value", "numbers", "numbers"]
