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
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.how_it_began.corners import feeding, teacher_forcing
from dashboard.app_pages.how_it_began.corners.figures import (
    Feeding,
    alignment_heatmap,
    error_curves,
    feeding_diagram,
    forcing_curves,
    walk_panels,
    walk_plane,
)
from dashboard.models import menu
from dashboard.models.walks import corners as corners_lesson
from dashboard.models.walks.corners import Lesson, Replay
from dashboard.theme import DARK, LIGHT
from dashboard.view import training as view_training
from dashboard.view.settings import Settings
from tests.kit.numbers.cells import Cells, close
from tests.kit.pages import array, figures, link, open_page, press_counted, shown, trace
from tests.kit.waiting import PATIENCE, Clock, wait_for
from transformer.__main__ import main
from transformer.corners import CornerConfig, every_walk, walks
from transformer.experiments.teacher_forcing import Forcing, Trial
from transformer.foundation.program import program
from transformer.recurrent.corners import build_walker, train_corners

STEPS = 30
COMPLETE = view_training.corners_of
CHECKPOINTS = Path(__file__).parents[4] / "checkpoints"
SHIPPED = CHECKPOINTS / "corners-none.json"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings of a few steps: the page must be right about a bad model as well."""
    monkeypatch.setattr(view_training, "corners_of", lambda view: replace(COMPLETE(view), steps=STEPS))


def config(**changes: object) -> CornerConfig:
    return replace(CornerConfig(d_model=4, steps=STEPS), **changes)


# --- the model once more, with numpy


def weights_of(settings: CornerConfig) -> dict[str, np.ndarray]:
    """The weights after training, as numbers."""
    *_, last = train_corners(build_walker(settings), every=settings.steps, fresh=2)
    return {name: value.numpy().astype(np.float64) for name, value in last.weights.items()}


def gru(w: dict[str, np.ndarray], side: str, x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """One step of a gated recurrent unit, as PyTorch's documentation has it."""
    parts = {
        kind: w[f"core.{side}.layers.0.weight_{kind}_l0"] @ v + w[f"core.{side}.layers.0.bias_{kind}_l0"]
        for kind, v in (("ih", x), ("hh", h))
    }
    (ri, zi, ni), (rh, zh, nh) = (np.split(parts[kind], 3) for kind in ("ih", "hh"))
    r, z = 1 / (1 + np.exp(-(ri + rh))), 1 / (1 + np.exp(-(zi + zh)))
    return (1 - z) * np.tanh(ni + r * nh) + z * h


def said_by_hand(
    w: dict[str, np.ndarray], settings: CornerConfig, given: np.ndarray, true: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The next two corners and the alignment; with `true` the second corner is said after it."""
    states, h = [], np.zeros(settings.d_model)
    for point in given:
        h = gru(w, "encoder", point, h)
        states.append(h)
    read, corners, alphas = given[-1], [], []
    for target in range(2):
        h = gru(w, "decoder", read, h)
        features = h
        if settings.attention == "dot":
            names = ("query", "key", "value")
            maps = {n: (w[f"core.attention.{n}.weight"], w[f"core.attention.{n}.bias"]) for n in names}
            query = maps["query"][0] @ h + maps["query"][1]
            scores = np.array([query @ (maps["key"][0] @ state + maps["key"][1]) for state in states])
            alpha = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
            context = sum(a * (maps["value"][0] @ s + maps["value"][1]) for a, s in zip(alpha, states, strict=True))
            features = np.concatenate([context, h])
            alphas.append(alpha)
        read = w["out.weight"] @ features + w["out.bias"]
        corners.append(read)
        if true is not None and target == 0:
            read = true
    return np.array(corners), np.array(alphas)


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("query", "changes", "kind"),
    [
        ({}, {}, (0, 1, 2)),
        (
            {"corner_attention": "dot", "corner_most": "4", "corner_walk": "upper right, anticlockwise",
             "corner_given": "3", "corner_seed": "2"},
            {"attention": "dot", "most": 4, "seed": 2},
            (2, -1, 3),
        ),
        ({"corner_attention": "none", "corner_noise": "0.2", "corner_walk": "lower right, clockwise"},
         {"attention": "none", "noise": 0.2}, (3, 1, 2)),
    ],
)  # fmt: skip
def test_every_number_is_what_the_weights_say(query: dict, changes: dict, kind: tuple[int, int, int]) -> None:
    settings = config(**changes)
    w, drawn = weights_of(settings), every_walk(settings.most, settings.noise)
    walk, count = drawn.which(*kind), kind[2]
    app = open_page("corners", **query)
    assert not app.warning
    said, alpha = said_by_hand(w, settings, drawn.source[walk, :count])
    off = [math.dist(one, other) for one, other in zip(said, drawn.target[walk], strict=True)]
    np.testing.assert_allclose(array(trace(app, "corners-plane", "given")["x"]), drawn.source[walk, :count, 0])
    np.testing.assert_allclose(array(trace(app, "corners-plane", "true next")["y"]), drawn.target[walk, :, 1])
    for axis, name in enumerate("xy"):
        drawn_way = array(trace(app, "corners-plane", "predicted")[name])
        np.testing.assert_allclose(drawn_way, [drawn.source[walk, count - 1, axis], *said[:, axis]], atol=1e-4)
    fresh = walks(np.random.default_rng([settings.seed, 1]), 512, settings.most, settings.noise)
    distances, helped, alphas = [], [], []
    for i in range(512):
        given = fresh.source[i, : fresh.given[i]]
        own, pattern = said_by_hand(w, settings, given)
        after, _ = said_by_hand(w, settings, given, true=fresh.target[i, 0])
        distances += [math.dist(one, other) ** 2 for one, other in zip(own, fresh.target[i], strict=True)]
        helped += [math.dist(one, other) ** 2 for one, other in zip(after, fresh.target[i], strict=True)]
        if fresh.given[i] == count:
            alphas.append(pattern)
    error, helped_error = (math.sqrt(sum(each) / 1024) for each in (distances, helped))
    least = settings.noise * 1.41421356
    assert app.title[0].value == (
        f"After {STEPS} steps the predicted corners are {error:.2f} from the true ones; noise alone makes {least:.2f}."
    )
    captions = [caption.value for caption in app.caption]
    assert any(
        f"is {off[0]:.2f} from the true one, corner {count + 2} {off[1]:.2f}." in caption for caption in captions
    )
    assert any(f"Error {error:.3f} when" in c and f", {helped_error:.3f} from the true first" in c for c in captions)
    assert array(trace(app, "corners-errors", "free-running")["y"])[-1] == pytest.approx(error, abs=1e-4)
    assert array(trace(app, "corners-errors", "fed the true corner")["y"])[-1] == pytest.approx(helped_error, abs=1e-4)
    if settings.attention == "none":
        assert not {"corners-alignment", "corners-mean"} & set(figures(app))
        words = f"Everything the decoder knows of the {count} corners is these 4 numbers: the encoder's last state"
        assert any(words in caption and f"It also reads corner {count} itself" in caption for caption in captions)
        rolled = rolled_by_hand(w, settings, drawn.source[walk, :count])
        columns = [trace(app, "corners-handed", name) for name in ("encoder", "decoder")]
        shown = np.concatenate([array(each["z"]) for each in columns], axis=1)
        np.testing.assert_allclose(shown.T, [step["after"] for step in rolled], atol=1e-4)
        (frame,) = figures(app)["corners-handed"]["layout"]["shapes"]
        assert (frame["x0"], frame["x1"]) == (count - 1.5, count - 0.5)
    else:
        np.testing.assert_allclose(array(trace(app, "corners-alignment", "alignment")["z"]), alpha, atol=1e-4)
        np.testing.assert_allclose(
            array(trace(app, "corners-mean", "alignment")["z"]), np.mean(alphas, axis=0), atol=1e-4
        )
        best = int(alpha[0].argmax())
        assert any(f"Corner {count + 1} looks most at corner {best + 1} ({alpha[0, best]:.2f}" in c for c in captions)


def test_uniform_attention_says_so() -> None:
    app = open_page("corners", corner_attention="uniform", corner_most="4")
    assert any("the same weight, 1/4, for every query" in caption.value for caption in app.caption)


# --- hidden state by hidden state


def rows_of(app: AppTest, heading: str) -> list[list[str]]:
    """The rows of the table with this heading, labels first."""
    (body,) = (each.proto.body for each in app.get("html") if f">{heading}</th>" in each.proto.body)
    return Cells(body).rows[2:]


def rolled_by_hand(w: dict[str, np.ndarray], settings: CornerConfig, given: np.ndarray) -> list[dict[str, np.ndarray]]:
    """Every step of a walk: what is read, the state before, gates, candidate, the state after."""

    def step(side: str, x: np.ndarray, h: np.ndarray) -> dict[str, np.ndarray]:
        names = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
        wx, bx, wh, bh = (w[f"core.{side}.layers.0.{name}_l0"] for name in names)
        d, ours, theirs = len(h), wx @ x + bx, wh @ h + bh
        reset, update = (1 / (1 + np.exp(-(ours[i : i + d] + theirs[i : i + d]))) for i in (0, d))
        new = np.tanh(ours[2 * d :] + reset * theirs[2 * d :])
        return {"x": x, "h": h, "r": reset, "z": update, "n": new, "after": (1 - update) * new + update * h}

    found, h = [], np.zeros(settings.d_model)
    for point in given:
        found.append(step("encoder", point, h))
        h = found[-1]["after"]
    said, _ = said_by_hand(w, settings, given)
    for read in (given[-1], said[0]):
        found.append(step("decoder", read, h))
        h = found[-1]["after"]
    return found


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("query", "changes", "kind"),
    [
        ({}, {}, (0, 1, 2)),
        (
            {"corner_width": "2", "corner_most": "3", "corner_walk": "upper right, anticlockwise",
             "corner_step": "20"},
            {"d_model": 2, "most": 3},
            (2, -1, 3),
        ),
        ({"corner_attention": "dot"}, {"attention": "dot"}, (0, 1, 2)),
    ],
)  # fmt: skip
def test_the_roll_out_is_worked_out_by_hand(query: dict, changes: dict, kind: tuple[int, int, int]) -> None:
    settings, count = config(**changes), kind[2]
    steps = train_corners(build_walker(settings), every=10, fresh=2)
    at = int(query.get("corner_step", STEPS))
    w = {n: v.numpy().astype(np.float64) for step in steps if step.step == at for n, v in step.weights.items()}
    drawn = every_walk(settings.most, settings.noise)
    walk = drawn.which(*kind)
    given = drawn.source[walk, :count].astype(np.float64)
    rolled, (said, _) = rolled_by_hand(w, settings, given), said_by_hand(w, settings, given)
    for place, name in enumerate([*(f"e{i + 1}" for i in range(count)), "d1", "d2"]):
        app = open_page("corners", **query, **({"corner_roll": name} if place else {}))
        assert not app.warning
        table = rows_of(app, "reads x")
        assert [row[0] for row in table] == [
            *(f"encoder at {i + 1}" for i in range(count)), "the vector", "decoder at 1", "decoder at 2",
        ]  # fmt: skip
        d = settings.d_model
        for row, step in zip([*table[:count], *table[count + 1 :]], rolled, strict=True):
            close(row[1 : 3 + d], np.array([*step["x"], *step["after"]]))
        assert table[count][3 : 3 + d] == table[count - 1][3 : 3 + d]
        for row, corner, true in zip(table[-2:], said, drawn.target[walk], strict=True):
            close(row[-4:], np.array([*corner, *true]))
        step = rolled[place]
        kept, new = step["z"] * step["h"], (1 - step["z"]) * step["n"]
        expected = np.stack([step["h"], step["r"], step["z"], step["n"], new, kept, step["after"]], axis=1)
        for row, numbers in zip(rows_of(app, "(1−z) n"), expected, strict=True):
            close(row[1:], numbers)
        captions = [caption.value for caption in app.caption]
        told = [each.value for each in app.markdown]
        assert any("these 2 numbers" in each or "these 4 numbers" in each for each in told) == (
            settings.attention == "none"
        )
        assert any("made by dot attention from all 2 encoder states" in each for each in told) == (
            settings.attention == "dot"
        )
        near, far = (math.dist(one, other) for one, other in zip(said, drawn.target[walk], strict=True))
        assert any(f"{near:.2f} from the true corner. Then" in c and f"{far:.2f} from the true corner." in c
                   for c in captions)  # fmt: skip
        (formula,) = (each.value for each in app.markdown if "h'_1 = " in each.value)
        *_, last = re.findall(r"-?\d+\.\d+", formula)
        close([last], step["after"][:1])
        if place:
            keeps = int(step["z"].argmax())
            assert any(f"Number {keeps + 1} keeps most of the state before (z = {step['z'][keeps]:.2f})" in c
                       for c in captions)  # fmt: skip


def test_a_wide_state_is_not_shown_number_by_number() -> None:
    app = open_page("corners", corner_width="9")
    assert any("A state has 9 numbers here. Up to 8 can be shown" in caption.value for caption in app.caption)
    assert not any("corner_roll" in button.key for button in app.button if button.key)


def test_the_steps_of_the_roll_out_are_gone_through_and_forgotten_with_the_walk() -> None:
    app = open_page("corners", corner_most="3")
    press_counted(app, "corner_roll-on")
    assert link(app)["corner_roll"] == "e2"
    next(slider for slider in app.slider if slider.label == "Given corners").set_value(2).run()
    assert not app.warning
    assert "corner_roll" not in link(app)
    app = open_page("corners", corner_roll="e9")
    assert [warning.value for warning in app.warning] == ["There is no step “e9” here; this is Encoder 1."]


# --- links


def test_a_step_of_a_link_is_shown_and_the_curve_ends_there() -> None:
    app = open_page("corners", corner_step="0")
    assert app.title[0].value.startswith("Before training the predicted corners are ")
    assert array(trace(app, "corners-errors", "free-running")["x"]).tolist() == [0]
    app = open_page("corners", corner_step="20")
    assert app.title[0].value.startswith("After 20 steps ")
    assert array(trace(app, "corners-errors", "free-running")["x"]).tolist() == [0, 10, 20]
    assert link(app)["corner_step"] == "20"


@pytest.mark.daily(3)
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"corner_step": "7"}, "Step 7 of this training was not recorded. You see its last step, 30."),
        ({"corner_walk": "the long way home"}, "There is no walk “the long way home” here"),
        ({"corner_given": "5"}, "Given corners must be 2 to 2 here"),
        ({"corner_attention": "cosine"}, "There is no attention “cosine” here"),
        ({"corner_noise": "0.9"}, "corner_noise=0.9 cannot be used"),
        ({"corner_forcing": "nan"}, "corner_forcing=nan cannot be used"),
        ({"corner_most": "40"}, "corner_most=40 cannot be used"),
    ],
)
def test_what_a_link_names_in_vain_falls_back_with_one_notice(query: dict[str, str], words: str) -> None:
    app = open_page("corners", **query)
    assert [words in shown(warning.value) for warning in app.warning] == [True]
    assert app.title[0].value.startswith(f"After {STEPS} steps ")


def test_other_choices_are_another_training_from_its_last_step_on() -> None:
    app = open_page("corners", corner_step="10", corner_most="4", corner_given="3")
    next(slider for slider in app.slider if slider.label == "Most given corners").set_value(2).run()
    assert not app.exception
    assert not app.warning
    assert "corner_step" not in link(app)
    assert app.title[0].value.startswith(f"After {STEPS} steps ")
    assert len(array(trace(app, "corners-plane", "given")["x"])) == 2


def test_another_walk_is_the_same_training() -> None:
    app = open_page("corners", corner_step="10")
    app.selectbox(key="control-corner_walk").set_value("upper right, anticlockwise").run()
    drawn = every_walk()
    np.testing.assert_allclose(
        array(trace(app, "corners-plane", "given")["x"]), drawn.source[drawn.which(2, -1, 2), :, 0]
    )
    assert link(app) == {"run": "reverse", "corner_step": "10", "corner_walk": "upper right, anticlockwise"}


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
    assert len(reads) == 1
    assert app.title[0].value.startswith("After 10 steps ")
    assert array(trace(app, "corners-errors", "free-running")["x"]).tolist() == [0, 10]


def test_a_replay_that_is_stopped_stays_at_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corners_lesson, "WATCHED", 1e6)
    app = open_page("corners")
    button(app, "corners-replay").click().run()
    assert app.title[0].value.startswith("Before training ")
    button(app, "corners-stop").click().run()
    assert link(app)["corner_step"] == "0"
    assert app.title[0].value.startswith("Before training ")


def test_a_training_that_breaks_off_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Lesson) -> None:
        raise RuntimeError("no memory left")

    monkeypatch.setattr(Lesson, "_taken", broken)
    app = open_page("corners", corner_seed="77")
    assert [error.value for error in app.error] == ["The training failed: no memory left."]
    assert button(app, "corners-replay").disabled
    monkeypatch.undo()
    monkeypatch.setattr(view_training, "corners_of", lambda view: replace(COMPLETE(view), steps=STEPS))
    monkeypatch.setattr(corners_lesson, "AT_ONCE", PATIENCE)
    other = open_page("corners", corner_seed="77")
    assert not other.error
    assert other.title[0].value.startswith(f"After {STEPS} steps ")


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


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("query", "changes", "kind"),
    [
        ({"corner_case": "above"}, {}, (0, 1, 2)),
        (
            {"corner_part": "forcing", "corner_attention": "dot", "corner_most": "3", "corner_given": "2",
             "corner_walk": "upper right, anticlockwise", "corner_seed": "2"},
            {"attention": "dot", "most": 3, "seed": 2},
            (2, -1, 2),
        ),
    ],
)  # fmt: skip
def test_what_is_fed_and_what_comes_of_it_is_worked_out_by_hand(query: dict, changes: dict, kind: tuple) -> None:
    settings = config(teacher_forcing=1.0, **changes)
    w, drawn = weights_of(settings), every_walk(settings.most, settings.noise)
    walk, count = drawn.which(*kind), kind[2]
    given, true = drawn.source[walk, :count], drawn.target[walk]
    own, _ = said_by_hand(w, settings, given)
    helped, _ = said_by_hand(w, settings, given, true=true[0])
    app = open_page("corners", **query)
    assert not app.warning

    def written_as(point: np.ndarray) -> str:
        return "({})".format(", ".join(f"{value:.2f}".replace("-", "−") for value in point))

    columns = [given[-1], true[0], given[-1], own[0]]  # two steps fed the truth, two steps fed what was said
    assert trace(app, "corners-fed", "reads")["text"] == [written_as(point) for point in columns]
    assert trace(app, "corners-fed", "predicts")["text"] == [written_as(point) for point in [*helped, *own]]
    assert trace(app, "corners-fed", "true")["text"] == [written_as(point) for point in [*true, *true]]
    off = [math.dist(one, other) for said in (helped, own) for one, other in zip(said, true, strict=True)]
    assert trace(app, "corners-fed", "off")["text"] == [f"{each:.2f} off" for each in off]

    fresh, squares = walks(np.random.default_rng([settings.seed, 1]), 512, settings.most, settings.noise), []
    for i in range(512):
        corners = fresh.source[i, : fresh.given[i]]
        both = [said_by_hand(w, settings, corners, true=t)[0] for t in (None, fresh.target[i, 0])]
        squares.append([((said - fresh.target[i]) ** 2).sum(axis=1) for said in both])
    free, fed = np.sqrt(np.mean(squares, axis=0))
    assert free[0] == pytest.approx(fed[0])
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
    more = round(free[1] - fed[1], 2)
    verdict = "Both are the same." if not more else f"Free-running {'costs' if more > 0 else 'saves'} {abs(more):.2f}."
    assert captions[1].endswith(f"and {free[1]:.2f} off when it reads its own. {verdict}")


@pytest.mark.parametrize(
    ("free", "helped", "verdict"),
    [
        (0.9, 0.6, "Free-running costs 0.30."),
        (0.5, 0.61, "Free-running saves 0.11."),
        (0.5, 0.502, "Both are the same."),
    ],
)
def test_the_errors_are_said_as_they_are(free: float, helped: float, verdict: str) -> None:
    none = np.zeros((1, 2, 2))
    found = feeding.Fed(none, none, np.array([0.4, free]), np.array([0.4, helped]))
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
    app = open_page("corners", corner_part="nonsense")
    assert [warning.value for warning in app.warning] == ["There is no part “nonsense” here; this is The walks."]


def parts(app: AppTest):
    """The choice under the title."""
    return next(each for each in app.get("button_group") if each.key == "control-corner_part")


def test_a_state_too_wide_to_be_kept_has_no_feeding_but_its_curve() -> None:
    app = open_page("corners", corner_part="forcing", corner_width="9")
    assert "corners-fed" not in figures(app)
    assert app.title[0].value == "Teacher forcing: does the decoder read the true corner, or its own?"
    assert any("A state has 9 numbers here" in caption.value for caption in app.caption)


def shipped_config() -> CornerConfig:
    return COMPLETE(Settings())


def test_the_shipped_measurement_is_drawn_number_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_training, "corners_of", COMPLETE)
    monkeypatch.setattr(corners_lesson, "taught", lambda settings: Lesson(replace(settings, steps=1)))
    values = json.loads(SHIPPED.read_text())
    assert CornerConfig(**values["config"]) == shipped_config()
    app = open_page("corners", corner_case="corners-none")  # which alone says that it is about teacher forcing
    for name, entry in (("free-running", "error"), ("fed the true corner", "helped_error")):
        mean = [
            sum(trial[entry] for trial in values["trials"] if trial["chance"] == chance) / 5
            for chance in (0, 0.25, 0.5, 0.75, 1)
        ]
        np.testing.assert_allclose(array(trace(app, "corners-forcing", name)["y"]), mean, atol=1e-5)
    free = {(trial["chance"], trial["seed"]): trial["error"] for trial in values["trials"]}
    differences = [free[1.0, seed] - free[0.0, seed] for seed in range(5)]
    mean = sum(differences) / 5
    half = 2.776 * math.sqrt(sum((each - mean) ** 2 for each in differences) / 4 / 5)
    numbers = [f"{value:+.3f}".replace("-", "−") for value in (mean, mean - half, mean + half)]
    words = f"{numbers[0]} (95 % interval {numbers[1]} to {numbers[2]}, 5 seeds)"
    assert any(words in caption.value for caption in app.caption)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["corners.json", "corners-none.json", "corners-narrow.json"])
def test_the_shipped_measurement_is_what_training_gives(name: str) -> None:
    """One of its trainings made again; on another processor the last digits, and little more, may differ."""
    found = Forcing.load(SHIPPED.with_name(name))
    assert found.complete
    again = replace(found.config, teacher_forcing=0.25, seed=3)
    *_, last = train_corners(build_walker(again), every=again.steps, fresh=found.sequences)
    assert found.errors()[1, 3] == pytest.approx(last.error, abs=0.02)
    assert found.errors(helped=True)[1, 3] == pytest.approx(last.helped_error, abs=0.02)


def test_the_shipped_measurements_are_one_click_away_and_each_says_what_it_shows(monkeypatch) -> None:
    """Of the three, one shows that teacher forcing costs error; the intervals are worked out here."""
    monkeypatch.setattr(view_training, "corners_of", COMPLETE)
    monkeypatch.setattr(corners_lesson, "taught", lambda settings: Lesson(replace(settings, steps=1)))
    app, verdicts, drawn = open_page("corners", corner_part="forcing"), [], {}
    for path in teacher_forcing.SHIPPED:
        assert path.stat().st_size < 10_000
        trials = json.loads(path.read_text())["trials"]
        free = {(trial["chance"], trial["seed"]): trial["error"] for trial in trials}
        differences = np.array([free[1.0, seed] - free[0.0, seed] for seed in range(5)])
        half = 2.776 * differences.std(ddof=1) / math.sqrt(5)
        if path.stem == "corners-narrow":
            guide = (SHIPPED.parents[1] / "docs" / "guide" / "how-it-began.md").read_text(encoding="utf-8")
            never, always = (np.mean([free[chance, seed] for seed in range(5)]) for chance in (0.0, 1.0))
            assert f"{always:.3f}\nafter training with true corners, {never:.3f} without" in guide
        verdicts.append("costs error" if differences.mean() > half else "no difference")
        drawn[path.stem] = [np.mean([free[chance, seed] for seed in range(5)]) for chance in (0, 0.25, 0.5, 0.75, 1)]
    assert verdicts == ["costs error", "no difference", "no difference"]
    assert [label.rpartition(": ")[2] for label in cases(app).options] == [*verdicts, "the settings below"]

    def shown(stem: str) -> bool:
        return array(trace(app, "corners-forcing", "free-running")["y"]) == pytest.approx(drawn[stem], abs=1e-5)

    assert shown("corners-narrow")
    assert any("teacher forcing costs free-running error" in caption.value for caption in app.caption)
    for stem in ("corners-none", "corners"):
        cases(app).set_value(stem).run()
        assert link(app) == {"run": "reverse", "corner_part": "forcing", "corner_case": stem}
        assert shown(stem)
        assert any("these seeds show no difference" in caption.value for caption in app.caption)
    cases(app).set_value("corners-narrow").run()
    assert link(app) == {"run": "reverse", "corner_part": "forcing"}


def cases(app: AppTest):
    """The choice of the settings whose measurement is shown."""
    return app.selectbox(key="control-corner_case")


@pytest.mark.daily(1)
@pytest.mark.parametrize("query", [{"corner_attention": "dot"}, {"corner_case": "above"}])
def test_other_settings_and_whoever_asks_see_the_measurement_of_the_settings_above(query: dict, monkeypatch) -> None:
    monkeypatch.setattr(view_training, "corners_of", COMPLETE)
    monkeypatch.setattr(corners_lesson, "taught", lambda settings: Lesson(replace(settings, steps=1)))
    app = open_page("corners", corner_part="forcing", **query)
    name = "corners.json" if "corner_attention" in query else "corners-none.json"
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
def test_the_sentence_says_what_the_numbers_say(found: Forcing, words: str) -> None:
    assert words in teacher_forcing.sentence(found)


class TestMeasuring:
    def test_what_nobody_measured_can_be_measured_here_and_is_then_shown(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(menu, "ROOT", tmp_path)
        begun: list[tuple] = []
        monkeypatch.setattr(
            teacher_forcing.Measuring, "start", lambda self, path, *options: begun.append((path, *options))
        )
        app = open_page("corners", corner_part="forcing", corner_width="3", corner_affine="0")
        assert any("Not measured yet" in caption.value for caption in app.caption)
        next(each for each in app.button if each.label == "Measure").click().run()
        ((path, *options),) = begun
        assert options == ["--d-model", "3", "--attention", "none", "--no-affine", "--most", "2", "--noise", "0.1"]
        assert path.parent == tmp_path
        replace(made_up(0.2, 0.4), config=config(d_model=3, affine=False)).save(path)
        app.run()
        assert array(trace(app, "corners-forcing", "free-running")["y"]) == pytest.approx([0.201, 0.401667], abs=1e-5)

    def test_a_partial_one_replaces_no_complete_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(menu, "ROOT", tmp_path)
        monkeypatch.setattr(teacher_forcing, "SHIPPED", (tmp_path / "shipped.json",))
        whole, path = made_up(0.2, 0.4), teacher_forcing.own(config())
        part = replace(whole, trials=whole.trials[:2])
        part.save(path)
        assert teacher_forcing.forced(config()) == part
        shipped = made_up(0.3, 0.3)
        shipped.save(teacher_forcing.SHIPPED[0])
        assert teacher_forcing.forced(config()) == shipped
        whole.save(path)
        assert teacher_forcing.forced(config(seed=3, teacher_forcing=1.0)) == whole
        assert teacher_forcing.forced(config(most=3)) is None

    def test_a_file_is_read_once_for_each_time_it_is_written(self, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.setattr(menu, "ROOT", tmp_path)
        monkeypatch.setattr(teacher_forcing, "SHIPPED", ())
        path, whole, read = teacher_forcing.own(config()), made_up(0.2, 0.4), []
        load = Forcing.load
        monkeypatch.setattr(Forcing, "load", lambda path: read.append(path) or load(path))
        whole.save(path)
        os.utime(path, (1, 1))
        assert [teacher_forcing.forced(config()) for _ in range(3)] == [whole] * 3
        assert read == [path]
        made_up(0.3, 0.4).save(path)
        assert teacher_forcing.forced(config()) == made_up(0.3, 0.4)
        assert read == [path] * 2

    def test_the_command_that_is_told_writes_what_the_page_reads(self, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.setattr(view_training, "corners_of", COMPLETE)
        monkeypatch.setattr(corners_lesson, "taught", lambda settings: Lesson(replace(settings, steps=1)))
        written: list[tuple[CornerConfig, Path]] = []
        monkeypatch.setattr(
            "transformer.experiments.teacher_forcing_measure.carry_out",
            lambda planned, path, processes: iter(written.append((planned.config, path)) or ()),
        )
        for elsewhere in (False, True):
            if elsewhere:
                monkeypatch.setattr(menu, "ROOT", tmp_path)
                monkeypatch.setattr("transformer.commands.measure.ROOT", tmp_path)  # as ATTENTION_LAB_RUNS has both
            query = {"corner_width": "3", "corner_noise": "0.15", "corner_affine": "0", "corner_seed": "4"}
            app = open_page("corners", corner_part="forcing", **query)
            (told,) = [caption.value for caption in app.caption if "On a command line" in caption.value]
            assert str(tmp_path) not in told
            assert main(shlex.split(told.partition(f"{program()} ")[2])) == 0
            ((made, path),) = written
            assert made == CornerConfig(d_model=3, affine=False, noise=0.15)
            assert path == teacher_forcing.own(made)
            assert path.parent == menu.ROOT
            written.clear()

    @pytest.mark.parametrize("mine", [True, False])
    def test_one_under_way_is_told_from_another(self, mine: bool, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.setattr(menu, "ROOT", tmp_path)
        monkeypatch.setattr(teacher_forcing.Measuring, "running", True)
        path = teacher_forcing.own(config(d_model=3 if mine else 5))
        replace(made_up(0.2, 0.4), config=config(d_model=3 if mine else 5)).save(path)
        monkeypatch.setattr(teacher_forcing.measuring, "path", path)
        app = open_page("corners", corner_part="forcing", corner_width="3")
        assert not app.exception
        told = [caption.value for caption in app.caption if "Another measurement" in caption.value]
        assert told == ([] if mine else ["Another measurement is running. This one can start after it."])
        labels = [each.label for each in app.button if "easur" in each.label]
        assert labels == (["Stop measuring"] if mine else [])

    def test_one_that_begins_meanwhile_is_a_sentence(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(menu, "ROOT", tmp_path)
        app = open_page("corners", corner_part="forcing", corner_width="3")
        monkeypatch.setattr(teacher_forcing.Measuring, "running", True)
        monkeypatch.setattr(teacher_forcing.measuring, "path", tmp_path / "another.json")
        next(each for each in app.button if each.label == "Measure").click().run()
        assert any("Another measurement is running" in warning.value for warning in app.warning)

    @pytest.mark.daily(2)
    @pytest.mark.parametrize(
        ("mine", "stopped", "cut"), [(True, False, True), (True, True, False), (False, False, False)]
    )
    def test_cut_off_is_only_this_one_and_not_by_its_reader(
        self, mine: bool, stopped: bool, cut: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(menu, "ROOT", tmp_path)
        monkeypatch.setattr(teacher_forcing.Measuring, "failed", True)
        monkeypatch.setattr(teacher_forcing.measuring, "stopped", stopped)
        monkeypatch.setattr(teacher_forcing.measuring, "path", teacher_forcing.own(config(d_model=3 if mine else 5)))
        app = open_page("corners", corner_part="forcing", corner_width="3")
        assert any("was interrupted" in caption.value for caption in app.caption) == cut

    def test_a_stop_is_remembered_until_the_next_begins(self, tmp_path: Path, monkeypatch) -> None:
        sleeper = [sys.executable, "-c", "import time; time.sleep(1e6)"]
        start = subprocess.Popen
        monkeypatch.setattr(
            "dashboard.models.background.subprocess.Popen", lambda command, **said: start(sleeper, **said)
        )
        measuring = teacher_forcing.Measuring("corners")
        monkeypatch.setattr(teacher_forcing, "measuring", measuring)
        measuring.start(tmp_path / "one.json")
        teacher_forcing.stop(tmp_path / "another.json")
        assert measuring.running
        teacher_forcing.stop(tmp_path / "one.json")
        assert (measuring.running, measuring.failed, measuring.stopped) == (False, True, True)
        measuring.start(tmp_path / "one.json")
        assert not measuring.stopped
        measuring.stop()

    def test_what_cannot_begin_is_a_sentence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(self: teacher_forcing.Measuring, path: Path, *options: str) -> None:
            raise OSError(28, "no room")

        monkeypatch.setattr(teacher_forcing.Measuring, "start", refuse)
        app = open_page("corners", corner_part="forcing", corner_width="3")
        next(each for each in app.button if each.label == "Measure").click().run()
        assert any("could not start: no room" in warning.value for warning in app.warning)


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
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
def test_the_numbers_of_a_corner_stand_outside_of_every_mark(noise: float) -> None:
    app = open_page("corners", corner_noise=str(noise))
    half = figures(app)["corners-plane"]["layout"]["xaxis"]["range"][1]
    drawn = every_walk(most=12, noise=noise)
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
