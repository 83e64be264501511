"""Square corners, the page: its numbers from the weights with numpy alone, what moves, and what a link may ask."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.learn.corners import feeding, roll_out, teacher_forcing, words
from dashboard.app_pages.learn.corners.figures import (
    Feeding,
    alignment_heatmap,
    error_curves,
    feeding_diagram,
    forcing_curves,
    walk_panels,
    walk_plane,
)
from dashboard.app_pages.learn.corners.settings import CornersSettings
from dashboard.models import menu
from dashboard.models.walks import corners as corners_lesson
from dashboard.models.walks.corners import Lesson, Replay
from dashboard.theme import DARK, LIGHT
from tests.kit import claims
from tests.kit.claims.laws.recurrent import Alignments, Gates
from tests.kit.numbers.cells import Cells, close
from tests.kit.pages import array, falls_back, figures, link, open_page, press, press_counted, trace
from tests.kit.recurrent_by_hand import corners_by_hand, on_fresh_walks
from tests.kit.waiting import PATIENCE, Clock, wait_for
from transformer.__main__ import main
from transformer.corners import CornerConfig, every_walk
from transformer.experiments.teacher_forcing import Forcing, Trial
from transformer.foundation.claims import Claim
from transformer.foundation.program import program
from transformer.recurrent.corners import Walker, build_walker, train_corners

STEPS = 20
COMPLETE = CornersSettings.corner_config
CHECKPOINTS = Path(__file__).parents[4] / "checkpoints"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings of a few steps: the page must be right about a bad model as well."""
    monkeypatch.setattr(CornersSettings, "corner_config", lambda mine: replace(COMPLETE(mine), steps=STEPS))


def config(**changes: object) -> CornerConfig:
    return replace(CornerConfig(d_model=4, steps=STEPS), **changes)


class Case:
    """A link, the walk that it shows, and the model; the page is opened once for all who only read it."""

    def __init__(self, kind: tuple[int, int, int], at: int, query: dict[str, str], **changes: Any) -> None:
        self.query, self.at, self.settings, self.count = query, at, config(**changes), kind[2]
        drawn = every_walk(self.settings.most, self.settings.noise)
        walk = drawn.which(*kind)
        self.given, self.true = drawn.source[walk, : self.count].astype(np.float64), drawn.target[walk]

    @cached_property
    def model(self) -> Walker:
        model = build_walker(self.settings)
        steps = train_corners(build_walker(self.settings), every=10, fresh=2)
        model.load_state_dict(next(step.weights for step in steps if step.step == self.at))
        return model

    @cached_property
    def app(self) -> AppTest:
        app = open_page("corners", **self.query)
        assert not app.warning
        return app


DOT = {"corner_attention": "dot", "corner_most": "4", "corner_noise": "0.0", "corner_given": "3", "corner_seed": "2"}
DOT |= {"corner_walk": "upper right, anticlockwise"}
NARROW = {"corner_width": "2", "corner_noise": "0.5", "corner_step": "10", "corner_walk": "lower right, clockwise"}
CASES = pytest.mark.parametrize(
    "case",
    [
        Case((2, -1, 3), STEPS, DOT, attention="dot", most=4, noise=0.0, seed=2),
        Case((3, 1, 2), 10, NARROW, d_model=2, noise=0.5),
    ],
    ids=["dot", "narrow"],
)


@CASES
def test_the_walk_in_view_is_what_the_weights_say(case: Case) -> None:
    app, count = case.app, case.count
    said, alpha, cells = corners_by_hand(case.model, case.given)
    off = [math.dist(one, other) for one, other in zip(said, case.true, strict=True)]
    for name, points in (("given", case.given), ("true next", case.true), ("predicted", [case.given[-1], *said])):
        drawn, atol = trace(app, "corners-plane", name), 1e-4 if name == "predicted" else 0
        np.testing.assert_allclose(np.stack([array(drawn["x"]), array(drawn["y"])], axis=1), points, atol=atol)
    captions = [caption.value for caption in app.caption]
    assert any(f"is {off[0]:.2f} from the true one, corner {count + 2} {off[1]:.2f}." in each for each in captions)
    if case.settings.attention == "none":
        assert not {"corners-alignment", "corners-mean"} & set(figures(app))
        words = f"Everything the decoder knows of the {count} corners is these 2 numbers: the encoder's last state"
        assert any(words in each and f"It also reads corner {count} itself" in each for each in captions)
        columns = [array(trace(app, "corners-handed", name)["z"]) for name in ("encoder", "decoder")]
        np.testing.assert_allclose(np.concatenate(columns, axis=1).T, [cell["after"] for cell in cells], atol=1e-4)
        (frame,) = figures(app)["corners-handed"]["layout"]["shapes"]
        assert (frame["x0"], frame["x1"]) == (count - 1.5, count - 0.5)
    else:
        np.testing.assert_allclose(array(trace(app, "corners-alignment", "alignment")["z"]), alpha, atol=1e-4)
        best = int(alpha[0].argmax())
        words = f"Corner {count + 1} looks most at corner {best + 1} ({alpha[0, best]:.2f}"
        assert any(words in each for each in captions)


@CASES
def test_the_errors_up_to_the_step_in_view_are_those_on_fresh_walks(case: Case) -> None:
    free, fed, alphas = on_fresh_walks(case.model, case.settings)
    error, helped_error = (math.sqrt((each**2).mean()) for each in (free, fed))
    least = f"noise alone makes {case.settings.noise * 1.41421356:.2f}."
    title = f"After {case.at} steps the predicted corners are {error:.2f} from the true ones; {least}"
    assert case.app.title[0].value == title
    words = f"Error {error:.3f} when", f", {helped_error:.3f} from the true first"
    assert any(all(each in caption.value for each in words) for caption in case.app.caption)
    for name, last in (("free-running", error), ("fed the true corner", helped_error)):
        curve = trace(case.app, "corners-errors", name)
        assert array(curve["x"]).tolist() == list(range(0, case.at + 1, 10))
        assert array(curve["y"])[-1] == pytest.approx(last, abs=1e-4)
    if case.settings.attention != "none":
        mean = array(trace(case.app, "corners-mean", "alignment")["z"])
        np.testing.assert_allclose(mean, alphas[case.count], atol=1e-4)


# --- hidden state by hidden state


def rows_of(app: AppTest, heading: str) -> list[list[str]]:
    """The rows of the table with this heading, labels first."""
    (body,) = (each.proto.body for each in app.get("html") if f">{heading}</th>" in each.proto.body)
    return Cells(body).rows[2:]


@CASES
def test_the_roll_out_is_worked_out_by_hand(case: Case) -> None:
    count, width, without = case.count, case.settings.d_model, case.settings.attention == "none"
    said, _, cells = corners_by_hand(case.model, case.given)
    encoded = [f"encoder at {i + 1}" for i in range(count)]
    place, name = (1, "e2") if without else (count, "d1")
    apps = {0: case.app, place: open_page("corners", **case.query, corner_roll=name)}
    for place, app in apps.items():
        table, cell = rows_of(app, "reads x"), cells[place]
        assert [row[0] for row in table] == [*encoded, "the vector", "decoder at 1", "decoder at 2"]
        for row, each in zip([*table[:count], *table[count + 1 :]], cells, strict=True):
            close(row[1 : 3 + width], np.array([*each["x"], *each["after"]]))
        assert table[count][3 : 3 + width] == table[count - 1][3 : 3 + width]
        for row, corner, true in zip(table[-2:], said, case.true, strict=True):
            close(row[-4:], np.array([*corner, *true]))
        kept, new = cell["z"] * cell["h"], (1 - cell["z"]) * cell["n"]
        expected = np.stack([*(cell[each] for each in "hrzn"), new, kept, cell["after"]], axis=1)
        for row, numbers in zip(rows_of(app, "(1−z) n"), expected, strict=True):
            close(row[1:], numbers)
        told, captions = ([each.value for each in kind] for kind in (app.markdown, app.caption))
        assert any("these 2 numbers" in each for each in told) == without
        assert any(f"made by dot attention from all {count} encoder states" in each for each in told) != without
        near, far = (math.dist(one, other) for one, other in zip(said, case.true, strict=True))
        words = f"{near:.2f} from the true corner. Then", f"{far:.2f} from the true corner."
        assert any(all(each in caption for each in words) for caption in captions)
        (formula,) = (each for each in told if "h'_1 = " in each)
        *_, last = re.findall(r"-?\d+\.\d+", formula)
        close([last], cell["after"][:1])
        if place:
            keeps = int(cell["z"].argmax())
            words = f"Number {keeps + 1} keeps most of the state before (z = {cell['z'][keeps]:.2f})"
            assert any(words in caption for caption in captions)


def test_a_wide_state_is_not_shown_number_by_number() -> None:
    app = open_page("corners", corner_width="9")
    words = "A state has 9 numbers here. Up to 8 can be shown"
    assert any(words in caption.value for caption in app.caption)
    assert not any("corner_roll" in button.key for button in app.button if button.key)
    parts(app).set_value("forcing").run()
    assert "corners-fed" not in figures(app)
    assert app.title[0].value == "Teacher forcing: does the decoder read the true corner, or its own?"
    assert any(words in caption.value for caption in app.caption)


# --- links


def test_what_a_link_names_in_vain_falls_back_with_a_notice_each() -> None:
    nonsense = {
        "corner_step": ("7", f"Step 7 of this training was not recorded. You see its last step, {STEPS}."),
        "corner_roll": ("e9", "There is no step “e9” here; this is Encoder 1."),
        "corner_walk": ("the long way home", "There is no walk “the long way home” here"),
        "corner_given": ("5", "Given corners must be 2 to 2 here"),
        "corner_attention": ("cosine", "There is no attention “cosine” here"),
        "corner_part": ("nonsense", "There is no part “nonsense” here; this is The walks."),
        "corner_noise": ("0.9", "corner_noise=“0.9” cannot be used"),
        "corner_forcing": ("nan", "corner_forcing=“nan” cannot be used"),
    }
    assert falls_back("corners", nonsense).title[0].value.startswith(f"After {STEPS} steps ")


def test_the_step_stays_with_another_walk_and_goes_with_another_training() -> None:
    app = open_page("corners", corner_attention="uniform", corner_step="10", corner_most="4", corner_given="3")
    assert any("the same weight, 1/3, for every query" in caption.value for caption in app.caption)
    press_counted(app, "corner_roll-on")
    app.selectbox(key="control-corner_walk").set_value("upper right, anticlockwise").run()
    drawn = every_walk(4)
    given = drawn.source[drawn.which(2, -1, 3), :3, 0]
    np.testing.assert_allclose(array(trace(app, "corners-plane", "given")["x"]), given)
    kept = {"run": "reverse", "corner_attention": "uniform", "corner_walk": "upper right, anticlockwise"}
    here = kept | {"corner_step": "10", "corner_most": "4"}
    assert link(app) == here | {"corner_given": "3", "corner_roll": "e2"}
    sliders = {slider.label: slider for slider in app.slider}
    sliders["Given corners"].set_value(2).run()
    assert link(app) == here | {"corner_given": "2"}  # another number of corners has other steps to go through
    sliders["Most given corners"].set_value(2).run()
    assert not app.exception
    assert not app.warning
    assert link(app) == kept
    assert app.title[0].value.startswith(f"After {STEPS} steps ")
    assert len(array(trace(app, "corners-plane", "given")["x"])) == 2


# --- what is under way


def button(app: AppTest, key: str):
    return next((each for each in app.button if each.key == key), None)


def of_its_steps(app: AppTest):
    """The one slider of the training's steps, chosen or yet to come."""
    (slider,) = [each for each in app.select_slider if each.label == "Training step"]
    return slider


def test_a_training_can_be_watched_and_stopped_and_another_session_sees_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(corners_lesson, "WATCHED", 1e6)
    app, other = open_page("corners"), open_page("corners")
    button(app, "corners-train").click().run()
    assert not app.exception
    assert button(app, "corners-replay").disabled
    assert of_its_steps(app).disabled
    other.run()
    assert not of_its_steps(other).disabled
    assert other.title[0].value.startswith(f"After {STEPS} steps ")
    assert button(other, "corners-stop") is None
    button(app, "corners-stop").click().run()
    assert not app.session_state["corner_own"].running
    reached = app.session_state["corner_own"].steps[-1].step
    assert reached < STEPS
    assert app.title[0].value.startswith("Before training" if reached == 0 else f"After {reached} steps ")
    assert button(app, "corners-train") is not None


def test_a_replay_shows_the_recorded_steps_in_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = Lesson(config(steps=30))
    lesson.wait(PATIENCE)
    assert [step.step for step in lesson.steps] == [0, 10, 20, 30]
    assert not lesson.running
    assert all(step.weights for step in lesson.steps)  # what is shown number by number
    wide = Lesson(config(steps=10, d_model=corners_lesson.ROLLED + 1))
    wide.wait(PATIENCE)
    assert len(wide.steps) == 2
    assert all(not step.weights for step in wide.steps)
    monkeypatch.setattr(corners_lesson, "time", clock := Clock())
    replay, shown = Replay(lesson, clock.now, 100.0), []
    for seconds in (0, 51, 149):
        clock.sleep(seconds)
        shown.append(([step.step for step in replay.steps], replay.running))
    assert shown == [([0], True), ([0, 10], True), ([0, 10, 20, 30], False)]
    assert not Replay(lesson, clock.now, 0.0).running
    assert len(Replay(lesson, clock.now, 0.0).steps) == 4


def test_everything_in_one_picture_is_of_the_same_step() -> None:
    lesson, reads = Lesson(config()), []
    lesson.wait(PATIENCE)

    class Growing(Replay):
        """Further at every look."""

        @property
        def steps(self) -> list:
            reads.append(None)
            return lesson.steps[: 1 + len(reads)]

    app = open_page("corners")
    app.session_state["corner_own"] = Growing(lesson, time.monotonic(), 1e6)
    app.run()
    assert not app.exception
    drawn = array(trace(app, "corners-errors", "free-running")["x"]).tolist()
    assert drawn == [10 * place for place in range(len(drawn))]
    assert drawn[1:]
    assert app.title[0].value.startswith(f"After {drawn[-1]} steps ")


def test_a_replay_that_is_stopped_stays_at_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corners_lesson, "WATCHED", 1e6)
    app = open_page("corners")
    button(app, "corners-replay").click().run()
    assert app.title[0].value.startswith("Before training ")
    button(app, "corners-stop").click().run()
    assert link(app)["corner_step"] == "0"
    assert app.title[0].value.startswith("Before training ")


def test_a_training_that_breaks_off_says_why_and_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Lesson) -> None:
        raise RuntimeError("no memory left")

    with monkeypatch.context() as patched:
        patched.setattr(Lesson, "_taken", broken)
        app = open_page("corners", corner_seed="77")
    assert [error.value for error in app.error] == ["The training failed: no memory left."]
    assert button(app, "corners-replay").disabled
    app.run()
    assert not app.error
    assert app.title[0].value.startswith(f"After {STEPS} steps ")


def test_two_trainings_that_nobody_watches_go_on_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    going, most, lock, go = [0], [0], threading.Lock(), threading.Event()

    def counted(self: Lesson):
        with lock:
            going[0] += 1
            most[0] = max(most[0], going[0])
        go.wait(PATIENCE)
        with lock:
            going[0] -= 1
        return iter(())

    monkeypatch.setattr(Lesson, "_taken", counted)
    lessons = [Lesson(config(seed=seed)) for seed in range(5)]
    watched = Lesson(config(), 1.0)
    # Two, and the one that is watched.
    wait_for("three trainings go on", lambda: going[0], lambda trainings: trainings == 3)
    assert all(each.running for each in [watched, *lessons])
    go.set()
    for each in [watched, *lessons]:
        each.wait(PATIENCE)
        assert not each.running
        assert not each.failure
    assert most[0] == 3


def test_before_pytorch_is_there_the_walks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.server.background.torch", lambda: None)
    app = open_page("corners")
    assert app.title[0].value == "A walk round a square: which corners come next?"
    assert len(array(trace(app, "corners-plane", "given")["x"])) == 2
    assert any("will now be trained" in caption.value for caption in app.caption)
    assert button(app, "corners-train").disabled
    assert button(app, "corners-replay").disabled


# --- teacher forcing


def test_what_is_fed_and_what_comes_of_it_is_worked_out_by_hand() -> None:
    forced = {"attention": "dot", "most": 4, "noise": 0.0, "seed": 2, "teacher_forcing": 1.0}
    case = Case((2, -1, 3), STEPS, DOT | {"corner_part": "forcing"}, **forced)
    app, true, count = case.app, case.true, case.count
    own, _, _ = corners_by_hand(case.model, case.given)
    helped, _, _ = corners_by_hand(case.model, case.given, true[0])

    def written_as(points: list[np.ndarray]) -> list[str]:
        return ["({})".format(", ".join(f"{value:.2f}".replace("-", "−") for value in point)) for point in points]

    off = [math.dist(one, other) for said in (helped, own) for one, other in zip(said, true, strict=True)]
    fed_and_own = {
        "reads": written_as([case.given[-1], true[0], case.given[-1], own[0]]),
        "predicts": written_as([*helped, *own]),
        "true": written_as([*true, *true]),
        "off": [f"{each:.2f} off" for each in off],
    }
    assert {name: trace(app, "corners-fed", name)["text"] for name in fed_and_own} == fed_and_own
    free, fed, _ = on_fresh_walks(case.model, case.settings)
    np.testing.assert_allclose(array(trace(app, "corners-growth", "free-running")["y"]), free, atol=1e-4)
    np.testing.assert_allclose(array(trace(app, "corners-growth", "fed the true corner")["y"]), fed, atol=1e-4)
    assert app.title[0].value == (
        f"The next prediction is {fed[1]:.2f} off after the true corner, and {free[1]:.2f} after its own."
    )
    captions, (first, second) = [caption.value for caption in app.caption], (count + 1, count + 2)
    assert captions[0] == (
        f"Both begin alike: the decoder reads corner {count} and predicts corner {first}, {off[0]:.2f} off. Then "
        f"teacher forcing lets it read the true corner {first}, and corner {second} is {off[1]:.2f} off. Free-running, "
        f"it reads its own corner {first}, and corner {second} is {off[3]:.2f} off."
    )
    assert captions[1].startswith("In training this GRU read true corners only (p = 1). ")
    assert f"is {fed[1]:.2f} off when it reads the true corner {first}, and {free[1]:.2f} off when it" in captions[1]


def test_the_errors_are_said_as_they_are() -> None:
    said = {(0.9, 0.6): "Free-running costs 0.30.", (0.5, 0.61): "Free-running saves 0.11."}
    for (free, helped), verdict in {**said, (0.5, 0.502): "Both are as far off."}.items():
        found = feeding.Fed(*[np.zeros((1, 2, 2))] * 2, np.array([0.4, free]), np.array([0.4, helped]))
        assert feeding.growth_words([3, 4], found).endswith(verdict)


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_the_thick_arrow_begins_at_what_is_fed(palette) -> None:
    points = np.arange(4.0).reshape(2, 2)
    ways = [
        Feeding("one", points, points, points + 1, helped=True),
        Feeding("two", points, points, points, helped=False),
    ]
    figure = feeding_diagram(ways, corners=[3, 4], palette=palette)
    paths = [shape for shape in figure.layout.shapes if shape.type == "path"]
    begin = [float(path.path.split()[1].split(",")[1]) for path in paths]
    rows = {trace.name: trace.y[0] for trace in figure.data}
    assert begin == [rows["true"], rows["predicts"]]
    assert all(float(path.path.split()[-1].split(",")[1]) == rows["reads"] for path in paths)
    assert list(figure.data[3].text) == ["1.41 off", "1.41 off", "0.00 off", "0.00 off"]


def test_the_part_of_the_page_is_chosen_at_its_top_and_a_link_names_it() -> None:
    app = open_page("corners", corner_width="3")
    assert not {"corners-fed", "corners-forcing"} & set(figures(app))
    parts(app).set_value("forcing").run()
    assert link(app) == {"run": "reverse", "corner_width": "3", "corner_part": "forcing"}
    assert {"corners-fed", "corners-growth"} == set(figures(app))  # nobody measured these settings
    assert not any(slider.label == "Teacher forcing p" for slider in app.slider)
    parts(app).set_value("walks").run()
    assert link(app) == {"run": "reverse", "corner_width": "3"}
    assert "corners-plane" in figures(app)


def parts(app: AppTest):
    """The choice under the title."""
    return next(each for each in app.get("button_group") if each.key == "control-corner_part")


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings as readers have them, of which there are measurements; what is trained here and now takes one step."""
    monkeypatch.setattr(CornersSettings, "corner_config", COMPLETE)
    monkeypatch.setattr(corners_lesson, "taught", lambda settings: Lesson(replace(settings, steps=1)))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["corners.json", "corners-none.json", "corners-narrow.json"])
def test_the_shipped_measurement_is_what_training_gives(name: str) -> None:
    """One of its trainings made again; on another processor the last digits, and little more, may differ."""
    found = Forcing.load(CHECKPOINTS / name)
    assert found.complete
    again = replace(found.config, teacher_forcing=0.25, seed=3)
    *_, last = train_corners(build_walker(again), every=again.steps, fresh=found.sequences)
    assert found.errors()[1, 3] == pytest.approx(last.error, abs=0.02)
    assert found.errors(helped=True)[1, 3] == pytest.approx(last.helped_error, abs=0.02)


def test_the_shipped_measurements_are_one_click_away_and_drawn_number_by_number(whole: None) -> None:
    """Of the three, one shows that teacher forcing costs error; the intervals are worked out here."""
    verdicts, app = {}, open_page("corners", corner_part="forcing")
    for stem in ("corners-narrow", "corners-none", "corners", "corners-narrow"):
        path = CHECKPOINTS / f"{stem}.json"
        assert path.stat().st_size < 10_000
        values = json.loads(path.read_text())
        if verdicts:
            cases(app).set_value(stem).run()
        chosen = {} if stem == "corners-narrow" else {"corner_case": stem}  # the first needs no name
        assert link(app) == {"run": "reverse", "corner_part": "forcing"} | chosen
        found = {
            entry: {(trial["chance"], trial["seed"]): trial[entry] for trial in values["trials"]}
            for entry in ("error", "helped_error")
        }
        for name, errors in zip(("free-running", "fed the true corner"), found.values(), strict=True):
            mean = [np.mean([errors[chance, seed] for seed in range(5)]) for chance in (0, 0.25, 0.5, 0.75, 1)]
            np.testing.assert_allclose(array(trace(app, "corners-forcing", name)["y"]), mean, atol=1e-5)
        never, always = (np.array([found["error"][chance, seed] for seed in range(5)]) for chance in (0.0, 1.0))
        mean, half = (always - never).mean(), 2.776 * (always - never).std(ddof=1) / math.sqrt(5)
        numbers = [f"{value:+.3f}".replace("-", "−") for value in (mean, mean - half, mean + half)]
        verdicts[stem] = "costs error" if mean > half else "no difference"
        words = f"{numbers[0]} (95 % interval {numbers[1]} to {numbers[2]}, 5 seeds): "
        words += "teacher forcing costs" if mean > half else "these seeds show no difference"
        assert any(words in caption.value for caption in app.caption)
        if stem == "corners-none":
            assert CornerConfig(**values["config"]) == COMPLETE(CornersSettings())
        if stem == "corners-narrow":
            guide = (CHECKPOINTS.parent / "docs" / "guide" / "learn.md").read_text(encoding="utf-8")
            assert f"{always.mean():.3f}\nafter training with true corners, {never.mean():.3f} without" in guide
    assert list(verdicts.values()) == ["costs error", "no difference", "no difference"]
    assert [label.rpartition(": ")[2] for label in cases(app).options] == [*verdicts.values(), "the settings below"]


def cases(app: AppTest):
    """The choice of the settings whose measurement is shown."""
    return app.selectbox(key="control-corner_case")


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ({"corner_part": "forcing", "corner_attention": "dot"}, "corners.json"),
        ({"corner_case": "above"}, "corners-none.json"),  # which alone says that it is about teacher forcing
    ],
)
def test_other_settings_and_whoever_asks_see_the_measurement_of_the_settings_above(
    query: dict[str, str], name: str, whole: None
) -> None:
    app = open_page("corners", **query)
    trials = json.loads((CHECKPOINTS / name).read_text())["trials"]
    never = np.mean([trial["error"] for trial in trials if trial["chance"] == 0])
    assert cases(app).value == "above"
    assert array(trace(app, "corners-forcing", "free-running")["y"])[0] == pytest.approx(never, abs=1e-5)


def made_up(low: float, high: float) -> Forcing:
    """Free-running errors that rise or fall from p = 0 to p = 1, the same for every seed but for a little."""
    found = Forcing(config(), (0.0, 1.0), (0, 1, 2), 64, {"torch": "9"})
    for seed in found.seeds:
        found = found.with_trial(Trial(0.0, seed, low + seed / 1000, 0.3, 1.0))
        found = found.with_trial(Trial(1.0, seed, high + seed * seed / 1000, 0.2, 1.0))
    return found


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (made_up(0.2, 0.4), "teacher forcing costs free-running error"),
        (made_up(0.4, 0.2), "teacher forcing saves free-running error"),
        (made_up(0.2, 0.2), "these seeds show no difference"),
        (replace(made_up(0.2, 0.4), trials=made_up(0.2, 0.4).trials[:3]), "3 of 6 trainings are done"),
    ],
)
def test_the_sentence_says_what_the_numbers_say(found: Forcing, words: str, heard: list[Claim]) -> None:
    assert words in teacher_forcing.sentence(found)
    if not found.complete:  # else it is judged by what is shipped
        claims.judge(cast("Any", found), heard[0])


# --- measuring anew


def test_what_nobody_measured_can_be_measured_here_and_is_then_shown(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple] = []

    def start(self: teacher_forcing.Measuring, path: Path, *options: str) -> None:
        if begun.append((path, *options)) or len(begun) == 1:
            raise OSError(28, "no room")

    monkeypatch.setattr(teacher_forcing.Measuring, "start", start)
    app = open_page("corners", corner_part="forcing", corner_width="3", corner_affine="0")
    assert any("Not measured yet" in caption.value for caption in app.caption)
    press(app, "Measure")
    assert any("could not start: no room" in warning.value for warning in app.warning)
    press(app, "Measure")
    path = teacher_forcing.own(config(d_model=3, affine=False))
    options = ["--d-model", "3", "--attention", "none", "--no-affine", "--most", "2", "--noise", "0.1"]
    assert begun == [(path, *options)] * 2
    assert path.parent == root
    replace(made_up(0.2, 0.4), config=config(d_model=3, affine=False)).save(path)
    app.run()
    assert array(trace(app, "corners-forcing", "free-running")["y"]) == pytest.approx([0.201, 0.401667], abs=1e-5)


def test_a_partial_measurement_replaces_no_complete_one_and_a_file_is_read_once_for_each_time_it_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, load = [], Forcing.load
    monkeypatch.setattr(Forcing, "load", lambda path: read.append(path) or load(path))
    monkeypatch.setattr(teacher_forcing, "SHIPPED", (root / "shipped.json",))
    made, shipped, path = made_up(0.2, 0.4), made_up(0.3, 0.3), teacher_forcing.own(config())
    part = replace(made, trials=made.trials[:2])
    part.save(path)
    os.utime(path, (1, 1))
    assert [teacher_forcing.forced(config()) for _ in range(3)] == [part] * 3
    assert read == [path]
    shipped.save(teacher_forcing.SHIPPED[0])
    assert teacher_forcing.forced(config()) == shipped
    made.save(path)
    assert teacher_forcing.forced(config(seed=3, teacher_forcing=1.0)) == made
    assert read.count(path) == 2
    assert teacher_forcing.forced(config(most=3)) is None


def test_the_command_that_is_told_writes_what_the_page_reads(tmp_path: Path, whole: None, monkeypatch) -> None:
    written: list[tuple[CornerConfig, Path]] = []
    monkeypatch.setattr(
        "transformer.experiments.teacher_forcing_measure.carry_out",
        lambda planned, path, processes: iter(written.append((planned.config, path)) or ()),
    )
    for folder in (menu.ROOT, tmp_path):
        monkeypatch.setattr(menu, "ROOT", folder)
        monkeypatch.setattr("transformer.commands.measure.ROOT", folder)  # as ATTENTION_LAB_RUNS has both
        query = {"corner_width": "3", "corner_noise": "0.15", "corner_affine": "0", "corner_seed": "4"}
        app = open_page("corners", corner_part="forcing", **query)
        (told,) = [caption.value for caption in app.caption if "On a command line" in caption.value]
        assert str(tmp_path) not in told
        assert main(shlex.split(told.partition(f"{program()} ")[2])) == 0
        made = CornerConfig(d_model=3, affine=False, noise=0.15)
        assert written.pop() == (made, teacher_forcing.own(made))
        assert teacher_forcing.own(made).parent == folder


def test_a_measurement_under_way_is_told_from_another_and_one_that_was_cut_off_from_one_that_was_stopped(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = (teacher_forcing.own(config(d_model=width)) for width in (3, 5))
    app = open_page("corners", corner_part="forcing", corner_width="3")
    monkeypatch.setattr(teacher_forcing.Measuring, "running", True)
    monkeypatch.setattr(teacher_forcing.measuring, "path", other)
    press(app, "Measure")
    assert any("Another measurement is running" in warning.value for warning in app.warning)

    def shown_now() -> tuple[list[str], list[str]]:
        """The buttons, and what is said of other measurements and of those that ended."""
        app.run()
        assert not app.exception
        words = ("Another measurement", "was interrupted")
        told = [each.value for each in app.caption if any(word in each.value for word in words)]
        return [each.label for each in app.button if "easur" in each.label], told

    assert shown_now() == ([], ["Another measurement is running. This one can start after it."])
    monkeypatch.setattr(teacher_forcing.measuring, "path", mine)
    replace(made_up(0.2, 0.4), config=config(d_model=3)).save(mine)
    assert shown_now() == (["Stop measuring"], [])
    assert [each.proto.text for each in app.get("progress")] == ["6 of 6 trainings"]
    monkeypatch.setattr(teacher_forcing.Measuring, "running", False)
    monkeypatch.setattr(teacher_forcing.Measuring, "failed", True)
    for path, stopped, cut in ((mine, False, True), (mine, True, False), (other, False, False)):
        monkeypatch.setattr(teacher_forcing.measuring, "path", path)
        monkeypatch.setattr(teacher_forcing.measuring, "stopped", stopped)
        assert bool(shown_now()[1]) == cut


def test_a_stop_is_of_this_measurement_alone_and_remembered_until_the_next_begins(tmp_path: Path, monkeypatch) -> None:
    path, another = tmp_path / "one.json", tmp_path / "another.json"
    path.write_text("an older one")
    sleeper, start = [sys.executable, "-c", "import time; time.sleep(1e6)"], subprocess.Popen
    monkeypatch.setattr("dashboard.models.background.subprocess.Popen", lambda command, **said: start(sleeper, **said))
    measuring = teacher_forcing.Measuring("corners")
    monkeypatch.setattr(teacher_forcing, "measuring", measuring)
    measuring.start(path)
    assert not path.exists()
    teacher_forcing.stop(another)
    assert measuring.running
    teacher_forcing.stop(path)
    assert (measuring.running, measuring.failed, measuring.stopped) == (False, True, True)
    measuring.start(path)
    assert not measuring.stopped
    measuring.stop()


# --- figures


def test_a_plane_numbers_its_corners_where_they_are() -> None:
    drawn = every_walk(most=5, noise=0.1)
    walk = drawn.which(1, 1, 5)
    figure = walk_plane(drawn.source[walk, :5], drawn.target[walk], None, drawn.visited(walk), reach=1.75, palette=DARK)
    told = {(np.sign(note.x), np.sign(note.y)): re.sub("<[^>]+>", "", note.text) for note in figure.layout.annotations}
    assert told == {(-1, 1): "1, 5", (1, 1): "2, 6?", (1, -1): "3, 7?", (-1, -1): "4"}
    assert np.isnan(figure.data[2].x[1:]).all()
    assert figure.layout.transition.duration is None
    flying = walk_plane(
        drawn.source[walk, :5], drawn.target[walk], drawn.target[walk], drawn.visited(walk), reach=1.75, flying=True
    )
    assert flying.layout.transition.duration > 0


@pytest.mark.daily(1)
@CASES
def test_the_numbers_of_a_corner_stand_outside_of_every_mark(case: Case) -> None:
    half = figures(case.app)["corners-plane"]["layout"]["xaxis"]["range"][1]
    drawn = every_walk(most=12, noise=case.settings.noise)
    for walk, given in enumerate(drawn.given):
        marks = np.concatenate([drawn.source[walk, :given], drawn.target[walk]])
        figure = walk_plane(marks[:-2], marks[-2:], None, drawn.visited(walk), reach=half)
        for note in figure.layout.annotations:
            assert max(abs(note.x), abs(note.y)) < 0.9 * half
            away = np.hypot(*(marks - [note.x, note.y]).T).min() * 396 / (2 * half)
            assert away > 25, (walk, note.text)  # pixels: half of an open circle and of a line of text


def test_panels_show_each_walk_in_its_place_and_frame_the_chosen_one() -> None:
    drawn, names = every_walk(), [f"walk {i}" for i in range(8)]
    figure = walk_panels(
        drawn.source, drawn.target, drawn.target + 1, names=names, columns=4, chosen=5, reach=1.75, palette=LIGHT
    )
    assert len(figure.data) == 24
    for i in range(8):
        given, true, said = figure.data[3 * i : 3 * i + 3]
        assert {given.xaxis, true.xaxis, said.xaxis} == {"x" if i == 0 else f"x{i + 1}"}
        np.testing.assert_allclose(np.stack([given.x, given.y], axis=1), drawn.source[i])
        np.testing.assert_allclose(np.stack([said.x, said.y], axis=1)[1:], drawn.target[i] + 1)
        assert list(true.customdata) == [i, i]
        axis = figure.layout[f"xaxis{'' if i == 0 else i + 1}"].domain
        assert axis[0] == pytest.approx((i % 4) * 1.03 / 4)
    frames = [shape for shape in figure.layout.shapes if shape.xref.endswith("domain")]
    assert [shape.xref for shape in frames] == ["x6 domain"]


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_an_alignment_writes_its_numbers_into_the_cells(palette) -> None:
    pattern = np.array([[0.125, 0.25, 0.625], [1.0, 0.0, 0.0]])
    figure = alignment_heatmap(pattern, palette=palette)
    cells, numbers = figure.data
    assert (cells.zmin, cells.zmax) == (0, 1)
    assert list(numbers.text) == ["0.12", "0.25", "0.62", "1.00", "0.00", "0.00"]
    assert list(zip(numbers.x, numbers.y, strict=True)) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    assert cells.text[1][0] == "corner 5 looks at corner 1: 1.000"
    assert list(figure.layout.yaxis.ticktext) == ["4", "5"]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]


def test_curves_stand_above_what_noise_leaves() -> None:
    steps, free = np.array([0, 10]), np.array([1.5, 0.5])
    figure = error_curves(steps, free, free / 2, floor=0.14, last=400)
    assert [list(each.y) for each in figure.data] == [[1.5, 0.5], [0.75, 0.25]]
    level, now = figure.layout.shapes
    assert (level.y0, level.y1) == (0.14, 0.14)
    assert (now.x0, now.x1) == (10, 10)
    assert figure.layout.yaxis.range[0] == 0
    assert figure.layout.xaxis.range == (0, 400)
    none = np.array([])
    assert len(error_curves(none, none, none, floor=0.14, last=400).layout.shapes) == 1


def test_forcing_draws_every_seed_and_means_of_those_that_are_there() -> None:
    free = np.array([[0.2, 0.4, np.nan], [0.3, np.nan, np.nan], [np.nan] * 3])
    figure = forcing_curves(np.array([0, 0.5, 1]), free, free + 0.1, floor=0.14, chosen=0.5)
    seeds, mean = figure.data[:2]
    assert np.nanmax(np.abs(np.array(seeds.y) - free.ravel())) < 1e-6
    np.testing.assert_allclose(mean.y, [0.3, 0.3, np.nan], atol=1e-6)
    level, now = figure.layout.shapes
    assert (level.y0, now.x0) == (0.14, 0.5)
    low, high = figure.layout.yaxis.range
    assert low < 0.14
    assert high > 0.5


# --- made-up numbers: of those that come out alike none is first


@pytest.mark.parametrize(
    ("here", "said"),
    [
        ([[0.9, 0.1], [0.2, 0.8]], "Corner 3 looks most at corner 1 (0.90; on average 0.50) and corner 4 looks most at "
                                   "corner 2 (0.80; on average 0.50): each at the corner opposite to it."),
        ([[0.9, 0.1], [0.7, 0.3]], "Corner 3 looks most at corner 1 (0.90; on average 0.50) and corner 4 looks most at "
                                   "corner 1 (0.70; on average 0.50)."),
        ([[0.501, 0.499], [0.2, 0.8]], "Corner 3 looks at every given corner alike (0.50 each) and corner 4 looks "
                                       "most at corner 2 (0.80; on average 0.50)."),
        ([[0.4, 0.4, 0.2], [0.1, 0.8, 0.1]], "Corner 4 looks most, and as much, at corners 1 and 2 (0.40 each) and "
                                             "corner 5 looks most at corner 2 (0.80; on average 0.33)."),
        ([[1 / 3] * 3] * 2, "Every given corner has the same weight, 1/3, for every query."),
    ],
)  # fmt: skip
def test_corners_that_are_looked_at_as_much_are_named_together(
    here: list[list[float]], said: str, heard: list[Claim]
) -> None:
    given = len(here[0])
    mean = np.full((2, given), 1 / given)
    assert words.looks_back(given, np.array(here), mean) == said
    if not said.startswith("Every"):
        claims.judge(cast("Any", Alignments(np.array(here), mean)), heard[0])


@pytest.mark.parametrize(
    ("z", "said"),
    [
        ([0.9, 0.1], "Number 1 keeps most of the state before (z = 0.90), number 2 least (z = 0.10)."),
        ([0.9, 0.902, 0.1, 0.104], "Numbers 1 and 2 keep most of the state before (z = 0.90), numbers 3 and 4 least "
                                   "(z = 0.10)."),
        ([0.501, 0.5], "With z = 0.50 it keeps that share of the state before."),
        ([0.3], "With z = 0.30 it keeps that share of the state before."),
    ],
)  # fmt: skip
def test_numbers_that_keep_as_much_are_named_together(z: list[float], said: str, heard: list[Claim]) -> None:
    read, before, update = np.array([0.5, -0.25]), np.ones(len(z)), np.array(z)
    cell = SimpleNamespace(read=read, before=before, update=update)
    assert roll_out.worked(cast("Any", cell), "Encoder 2") == f"Encoder 2 reads (0.50, −0.25). {said}"
    claims.judge(cast("Any", Gates(read, before, update)), heard[0])


def test_predictions_that_are_as_far_off_have_no_range() -> None:
    assert words.range_sentence(2, np.array([[0.101, 0.1]])).endswith("are 0.10 from the true corners.")
    assert words.range_sentence(2, np.array([[0.1, 0.2]])).endswith("are 0.10 to 0.20 from the true corners.")
