"""The training panel without a browser: presets, paces, pausing and resuming, and small models trained on the spot."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from streamlit.runtime.state.session_state import STREAMLIT_INTERNAL_KEY_PREFIX
from streamlit.testing.v1 import AppTest

from dashboard.components.payload import unpack
from dashboard.frame import live
from dashboard.frame.live_pictures import costs
from dashboard.frame.training_panel import FOLD, OWN
from dashboard.lectures.shelf import lectures
from dashboard.models import menu as model_menu
from dashboard.parts.prose import JOINER
from dashboard.view import clicks
from dashboard.view.pages import PAGES
from dashboard.view.settings import PACES
from tests.kit.pages import ROOT, UNFOLDED, array, figures, link, open_page, press, press_counted, shown, staged, trace
from tests.kit.runs import tiny
from tests.kit.waiting import Clock
from transformer.analysis.accuracy.by_position import accuracy_by_position
from transformer.analysis.accuracy.ceilings import ceiling
from transformer.analysis.film.film import Film
from transformer.config import RunConfig, TaskConfig, TrainingConfig
from transformer.presets import PRESETS
from transformer.training import lock
from transformer.training.devices.found import Device, Devices
from transformer.training.queue.pool import Pool
from transformer.training.quick import answer, small
from transformer.training.recording import develop, record
from transformer.training.runs import Control, Run

TINY = {"layers": "1", "heads": "2", "width": "16", "max_steps": "30", "length": "4"}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)
    monkeypatch.setattr("dashboard.view.training.FIRST_STEP", 0.0)
    monkeypatch.setattr("dashboard.view.clicks.ECHO", 0.0)
    monkeypatch.setattr("dashboard.frame.live.OBEDIENCE", 0.0)
    return tmp_path


@pytest.fixture
def handed(runs: Path, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """What the panel has put into the queue; nobody trains it."""
    queue: list[Run] = []
    monkeypatch.setattr("dashboard.server.background.pool.submit", lambda run, who: queue.append(run))
    return queue


def said(app: AppTest) -> str:
    return "\n".join(element.value for element in (*app.markdown, *app.caption, *app.warning))


def test_the_training_of_another_is_seen_from_the_queue_on_and_what_cannot_be_read_disturbs_nobody(runs: Path) -> None:
    """Its name is a text and no Markdown."""
    run = Run.create(runs / "*www.evil.test*", tiny())
    Run.create(runs / "a-folder-only", tiny()).set_state("paused", 3)
    broken = [Run.create(runs / name, tiny()) for name in ("damaged", os.fsdecode(b"no-\xff-text"))]
    (broken[0].folder / "run.json").write_text("{")
    assert all(each.under_way for each in broken)
    run.set_state("queued", 0)
    app, name = open_page("positions"), rf"**\*www{JOINER}.evil.test\***"
    assert f"{name} is waiting for its turn." in said(app)
    assert said(app).count("is waiting for its turn") == 1
    with lock.hold(run.folder):
        run.set_state("running", 7)
        app.run()
    assert f"{name} is in training, at step 7." in said(app)
    assert said(app).count("in training, at") == 1
    assert "*www.evil" not in said(app)


def test_a_click_that_is_reported_twice_is_one_click(handed: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.view.clicks.ECHO", 60.0)
    app = open_page("positions", **TINY)
    press(app, "Train")
    app.session_state.watched = None
    app.run()
    press(app, "Train")
    assert len(handed) == 1


def test_a_second_report_is_heard_as_one_however_long_the_answer_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlit.session_state", {})
    monkeypatch.setattr("dashboard.view.clicks.touch", lambda: None)
    monkeypatch.setattr("dashboard.view.clicks.ECHO", 0.1)
    clock, answers = Clock(), list[int]()
    monkeypatch.setattr("dashboard.view.clicks.time", clock)

    @clicks.once
    def answer_slowly(step: int) -> None:
        clock.sleep(60)
        answers.append(step)

    answer_slowly(1)
    answer_slowly(1)
    clock.sleep(0.2)
    answer_slowly(2)
    assert answers == [1, 2]


FOUND = Devices((Device("cpu", "CPU, 2 cores"), Device("cuda:0", "Tesla *V100*"), Device("cuda:1", "GT 710")))


@pytest.mark.parametrize(
    ("found", "device", "said"),
    [
        (None, "auto", "Looking for a GPU …"),
        (FOUND, "auto", "Trains on Tesla *V100*."),
        (FOUND, "cuda:1", "Trains on GT 710."),
        (FOUND, "cpu", "Trains on the CPU, 2 cores."),
        (
            FOUND.with_values(FOUND.all[1], fault="CUDA error").with_values(FOUND.all[2], tried=False),
            "auto",
            "Trains on the CPU, 2 cores. Tesla *V100* cannot be used (CUDA error).",
        ),
        (FOUND.with_values(FOUND.all[1], fault="CUDA error"), "cuda:0", "Tesla *V100* cannot be used (CUDA error)."),
        (
            FOUND.with_values(FOUND.all[0], milliseconds=2.0).with_values(FOUND.all[1], milliseconds=4.0),
            "auto",
            "Trains on the CPU, 2 cores. A step of the default model takes 2.0 ms there, and 4.0 ms on Tesla *V100*.",
        ),
    ],
)
def test_the_panel_says_of_devices_what_a_training_process_has_found(
    found: Devices | None, device: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.server.background.pool.devices", found)
    app = open_page("positions", UNFOLDED, device=device)
    assert said in [shown(each.value) for each in app.sidebar.caption]
    menu = ["auto", "cpu"] if found is None else ["auto", "cpu", "cuda:0", "cuda:1"]
    assert app.sidebar.selectbox(key="control-device").options == menu
    assert link(app).get("device", "auto") == device


# --- what is trained


@pytest.mark.daily(2)
@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_fills_the_panel_and_is_what_is_trained(preset, handed: list[Run]) -> None:
    app = open_page("positions", seed="3")
    menu = app.selectbox(key="control-preset")
    menu.set_value(preset.name).run()
    assert not app.exception
    press(app, "Train")
    (run,) = handed
    assert preset.matches(run.config)
    assert run.config.training.seed == 3


def test_a_touched_preset_is_ones_own_and_can_be_had_back(handed: list[Run]) -> None:
    app = open_page("positions", UNFOLDED)
    assert app.selectbox(key="control-preset").value == "reverse"
    app.number_input(key="control-learning_rate").set_value(0.5).run()
    assert app.selectbox(key="control-preset").value == OWN
    app.selectbox(key="control-preset").set_value("reverse").run()
    assert app.number_input(key="control-learning_rate").value == 5e-3
    assert "learning_rate" not in link(app)


@pytest.mark.daily(3)
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({}, ""),
        ({"seed": "3"}, "Differs from “reverse”: seed 0 → 3."),
        ({"layers": "1", "max_steps": "70"}, "Differs from “reverse”: layers 2 → 1, most steps 2000 → 70."),
        ({"length": "16", "positions": "none"}, "Differs from “reverse, length 16”: positions learned → none."),
        ({"task": "copy", "heads": "2"}, "Differs from “copy”: heads 4 → 2."),
    ],
)
def test_what_the_fold_hides_is_said_and_a_link_with_settings_of_its_own_unfolds_it(
    query: dict[str, str], words: str
) -> None:
    app = open_page("positions", **query)
    found = [shown(each.value) for each in app.sidebar.caption if each.value.startswith("Differs from")]
    assert found == ([words] if words else [])
    assert bool(app.sidebar.number_input) == bool(query.keys() - {"seed"})


def test_what_a_link_names_in_vain_is_put_right_though_it_is_folded_away() -> None:
    names = ("task", "architecture", "positions", "train_mask", "device")
    app = open_page("positions", {FOLD: False}, **dict.fromkeys(names, "nonsense"))
    assert not app.sidebar.number_input
    assert sum("“nonsense” here" in shown(warning.value) for warning in app.warning) == len(names)
    assert not link(app).keys() & set(names)


@pytest.mark.daily(2)
@pytest.mark.parametrize("pace", PACES)
def test_a_training_begins_at_its_pace(pace: str, handed: list[Run]) -> None:
    app = open_page("positions", pace=pace, **TINY)
    press(app, "Train")
    (run,) = handed
    expected = {"fast": Control(), "key": Control(pause_at=1)}
    assert run.control == (expected[pace] if pace in expected else Control(pace=float(pace)))


# --- while it is trained


def test_pause_step_resume_and_stop_reach_whoever_trains(handed: list[Run]) -> None:
    app = open_page("positions", **TINY)
    press(app, "Train")
    (run,) = handed
    with lock.hold(run.folder):
        run.set_state("running", 12)
        app.run()
        press(app, "Pause")
        assert run.control.pause_at == 0
        run.set_state("paused", 12)
        app.run()
        assert "is paused at step 12 of at most 30" in said(app)
        press_counted(app, "one-step", times=2)  # the second before the first of them has been taken
        assert run.control.pause_at == 14
        press(app, "Resume")
        assert run.control.pause_at is None
        assert handed == [run]  # its own process goes on with it
        run.set_state("running", 13)
        app.run()
        next(button for button in app.sidebar.button if button.label == "Stop").click().run()
        assert run.control.stop


def test_a_run_whose_process_is_gone_says_so_and_can_be_resumed(handed: list[Run], runs: Path) -> None:
    config = RunConfig(task=TaskConfig(length=3), training=TrainingConfig(max_steps=9, solved_at=2, device="cpu"))
    run = Run.create(runs / "cut-off", config)
    steps = record(run)
    for _ in range(4):
        next(steps)
    before = (run.folder / "state.json").read_text()
    steps.close()
    (run.folder / "state.json").write_text(before)  # as a kill would have left it
    app = open_page("positions", run="cut-off")
    assert "the process is gone" in said(app)
    press(app, "Resume its training")
    assert handed == [run]
    assert list(record(run))[-1].step == 9
    assert run.state.status == "finished"


def test_a_long_training_is_redrawn_less_often_and_at_once_again_when_it_is_paused(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", RunConfig())

    def step(number: int, seconds: float) -> None:
        line = {"step": number, "loss": 2.0, "learning_rate": 0.001, "gradient_norm": 1.0, "seconds": seconds}
        with (run.folder / "metrics.jsonl").open("a") as lines:
            lines.write(f"{json.dumps(line)}\n")

    with lock.hold(run.folder):
        run.set_state("running", 999)
        assert live._interval(run) == live.REFRESH
        step(9, 0.5)
        assert live._interval(run) == live.REFRESH
        step(999, live.LONG + 1)
        assert live._interval(run) == live.SELDOM
        run.ask(pace=5.0)
        assert live._interval(run) == live.REFRESH
        run.ask(pace=None)
        run.set_state("paused", 999)
        assert live._interval(run) == live.REFRESH
    run.set_film(b"made")
    run.set_state("finished", 999)
    assert live._interval(run) is None


def test_a_training_that_does_not_start_says_why(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(run: Run, who: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dashboard.server.background.pool.submit", full)
    app = open_page("positions", **TINY)
    press(app, "Train")
    assert "Training did not start" in said(app)
    assert "No space left on device" in said(app)


def test_a_click_before_a_process_is_warm_says_what_it_waits_for_and_how_long_that_took_here(
    handed: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.server.background.pool.preparing", lambda run: run in handed)
    app = open_page("positions", **TINY)
    press(app, "Train")
    for usual, told in (
        (None, "is ready …"),
        (6.4, "is ready (usually 6 s on this machine) …"),
        (0.2, "less than 1 s"),
    ):
        monkeypatch.setattr("transformer.training.queue.warm_ups.usual", lambda usual=usual: usual)
        app.run()
        assert f"**{handed[0].name}** is waiting until its training process" in said(app)
        assert told in said(app)
        assert ("usually" in said(app)) == (usual is not None)
    monkeypatch.setattr("dashboard.server.background.pool.preparing", lambda run: False)
    app.run()
    assert f"**{handed[0].name}** is waiting for its turn …" in said(app)


def test_where_no_training_can_begin_the_panel_says_why_and_the_run_keeps_the_reason(
    handed: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "no training can begin, because of _this_"
    monkeypatch.setattr(Pool, "trouble", why)
    app = open_page("positions", **TINY)
    (alert,) = app.sidebar.error
    assert alert.value.startswith("No training can begin, because of \\_this\\_. It is tried again")
    press(app, "Train")
    (run,) = handed
    run.set_state("failed", 0, why)
    app.run()
    assert f"**{run.name}:** no training can begin" in said(app)
    assert any(button.label == "Resume" for button in app.button)
    monkeypatch.setattr(Pool, "trouble", "")
    app.run()
    assert not app.sidebar.error


def test_the_costs_are_those_of_the_metrics(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", RunConfig(), stepping="eager: a CPU has no CUDA graphs", noise="anew")
    run.set_state("finished", 40, memory=300 * 2**20)
    metrics = [{"step": i, "milliseconds": 4.0 if i % 2 else 6.0, "seconds": i / 100} for i in range(1, 41)]
    words = costs(run, run.state, metrics, redraw=12.3)
    assert words == (
        "A step takes 5.0 ms; 100 steps a second, measurements included; the server draws this panel in 12 ms; "
        "the training process held at most 300 MiB; eager: a CPU has no CUDA graphs; anew."
    )


def test_rate_and_gradient_are_drawn_from_the_metrics(handed: list[Run]) -> None:
    app = open_page("positions", **TINY)
    press(app, "Train")
    (run,) = handed
    for _ in record(run):
        pass
    ended = (run.folder / "state.json").read_text()
    with lock.hold(run.folder):
        run.set_state("running", 30)
        app.run()
        app.toggle(key="bonnet").set_value(True).run()
        (run.folder / "state.json").write_text(ended)
    assert not app.exception
    for name in ("learning_rate", "gradient_norm"):
        drawn = trace(app, f"machine-{name}", "measured")
        assert array(drawn["y"]) == pytest.approx([line[name] for line in run.metrics()], rel=1e-6)


# --- and what if it were trained that way?


def test_a_page_trains_a_small_model_and_shows_what_it_reaches() -> None:
    app = open_page("positions", run="reverse", encoding="sinusoidal")
    assert "what-if" not in figures(app)  # nothing is trained that was not asked for
    app.toggle(key="control-answer").set_value(True).run()
    assert not app.exception
    config = small(Run(model_menu.ROOT / "reverse").config, positions="sinusoidal")
    found = answer(config)
    accuracy = accuracy_by_position(found.model, config.build_task(), sequences=2048, seed=config.training.seed + 1)
    bars = array(trace(app, "what-if", "measured")["y"])
    np.testing.assert_allclose(bars, accuracy.mean, atol=1e-6)
    np.testing.assert_allclose(array(trace(app, "what-if", "ceiling")["y"]), ceiling(config).accuracy, atol=1e-6)
    assert re.search(rf"solved after {len(found.steps)} steps", said(app))


def test_what_is_not_solved_in_its_steps_can_be_given_more() -> None:
    app = open_page("positions", run="reverse", encoding="none", answer="1", patience="10")
    assert "not solved after 10 steps." in said(app)
    assert "not yet at the ceiling" in said(app)
    press(app, "Train up to 40 steps")
    assert link(app)["patience"] == "40"
    assert "not solved after 40 steps." in said(app)


# --- in a lecture


@pytest.fixture
def lecture(runs: Path) -> dict[str, str]:
    """The link of a lecture's step, its model beside what is trained."""
    (runs / "reverse").symlink_to(ROOT / "checkpoints" / "reverse")
    return {"run": "reverse", "lecture": "attention", "lecture_step": "13", **TINY}


def long_ago(app: AppTest, seconds: float) -> AppTest:
    """As if the button had been pressed so many seconds earlier."""
    app.session_state.watched_since -= seconds
    return app.run()


@pytest.mark.daily(1)
@pytest.mark.parametrize("status", ["queued", "running"])
def test_a_lecture_cuts_a_training_off_and_plays_the_film_of_its_own_model(
    status: str, lecture: dict[str, str], handed: list[Run]
) -> None:
    app = press(open_page("overview", **lecture), "Train")
    (run,) = handed
    longest = lectures().files["attention"].training
    with lock.hold(run.folder):
        run.set_state(status, 12)
        long_ago(app, longest / 2)
        assert not run.control.stop
        assert "In its place" not in said(app)
        long_ago(app, longest)
        assert run.control.stop
        run.set_state("stopped", 14, "stopped by hand at step 14")
    app.run()
    assert f"stopped at step 14, because this lecture gives a training {longest} s" in said(app)
    assert "In its place, the film of **reverse**, which was trained before:" in said(app)
    assert link(app)["run"] == "reverse"  # and not the one that was cut off
    film = Film.load(ROOT / "checkpoints" / "reverse" / "film.npz")
    assert staged(app)["accuracySteps"] == film.steps.tolist()


def test_a_lecture_cuts_a_training_off_though_nobody_looks_at_its_page(
    lecture: dict[str, str], handed: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a hidden tab, which asks for nothing; the clock is this test's."""
    timer = MagicMock()
    monkeypatch.setattr("dashboard.server.deadlines.Timer", timer)
    app = press(open_page("overview", **lecture), "Train")
    (run,) = handed
    longest = lectures().files["attention"].training
    with lock.hold(run.folder):
        run.set_state("running", 12)
        app.run()
        timer.assert_called_once()
        seconds, ring, what = timer.call_args.args
        assert 0 < seconds <= longest
        run.ask(pace=1.0)
        ring(*what)
        assert not run.control.stop, "it has a pace of its own"
        run.ask(pace=None)
        ring(*what)
        assert run.control.stop
        run.set_state("stopped", 14, "stopped by hand at step 14")
    app.run()
    assert f"stopped at step 14, because this lecture gives a training {longest} s" in said(app)


@pytest.mark.daily(2)
@pytest.mark.parametrize("otherwise", [{"pace": "1"}, {"pace": "key"}, {"exploring": "1"}, {"lecture": ""}])
def test_no_training_is_cut_off_by_hand_outside_a_lecture_or_while_exploring(
    otherwise: dict[str, str], lecture: dict[str, str], handed: list[Run]
) -> None:
    shown = {name: value for name, value in (lecture | otherwise).items() if value}
    app = press(open_page("overview", **shown), "Train")
    (run,) = handed
    with lock.hold(run.folder):
        run.set_state("running", 12)
        long_ago(app, 10_000)
        assert not run.control.stop


def test_a_training_that_breaks_off_in_a_lecture_is_replaced_and_one_that_ends_is_not(
    lecture: dict[str, str], handed: list[Run]
) -> None:
    app = press(open_page("overview", **lecture), "Train")
    (run,) = handed
    run.set_state("failed", 3, "the loss became NaN")
    app.run()
    assert "the loss became NaN" in said(app)
    assert "In its place, the film of **reverse**" in said(app)
    app = press(open_page("overview", **lecture, seed="7"), "Train")
    assert list(record(handed[-1]))
    app.run()
    assert "In its place" not in said(app)
    assert link(app)["run"] == handed[-1].name


# --- when it is over


def train_here(handed: list[Run], **view: str) -> tuple[AppTest, Run]:
    """Train a small model on the first page, and look at the page at its end."""
    app = press(open_page("overview", **(TINY | view)), "Train")
    (run,) = handed
    assert list(record(run))
    assert develop(run)
    app.run()
    return app, run


def film_of(app: AppTest) -> dict[str, Any] | None:
    """What the panel plays once more; None while there is a line alone."""
    played = [unpack(each.proto.bytes)[0] for each in app.get("bidi_component") if "-stage-" in each.proto.id]
    return played[0] if played else None


def end_replay(app: AppTest) -> AppTest:
    """What the browser says at the end of a replay, at a key, or at a click."""
    (player,) = (each.proto.id for each in app.get("bidi_component") if "-stage-" in each.proto.id)
    states = app._tree.get_widget_states()
    told = json.dumps([{"event": "end", "value": True}])
    states.widgets.add(id=f"{STREAMLIT_INTERNAL_KEY_PREFIX}_{player}__events", json_trigger_value=told)
    app._run(states)
    assert not app.exception
    return app


def buttons(app: AppTest) -> list[str]:
    """What the line of a training can be asked for."""
    known = ("training-again", "resume", "put-away")
    return [each.key for each in app.button if each.key in known]


def test_a_quick_training_says_its_time_at_once_is_replayed_once_and_leaves_one_line(handed: list[Run]) -> None:
    app, run = train_here(handed)
    line = f"**{run.name}:** {run.state.reason}."
    assert line in said(app)
    film = Film.load(run.folder / "film.npz")
    played = film_of(app)
    assert played is not None
    assert (played["replay"], played["live"], played["length"]) == (True, False, 8000)
    assert played["accuracySteps"] == film.steps.tolist()
    assert played["stops"][0] == 0
    assert played["stops"][-1] == run.state.step
    end_replay(app)
    assert film_of(app) is None
    assert line in said(app)
    assert buttons(app) == ["training-again", "put-away"]
    app.run()
    assert film_of(app) is None
    app.button(key="training-again").click().run()
    assert film_of(app) == played
    app.switch_page(PAGES["heads"].script).run()
    assert film_of(app) is None
    assert line in said(app)
    app.switch_page(PAGES["overview"].script).run()
    assert film_of(app) is None, "the reader had gone on"


@pytest.mark.parametrize(
    ("status", "step", "reason"),
    [
        ("stopped", 7, "stopped by hand at step 7"),
        ("failed", 3, "the loss became NaN"),
        ("failed", 0, "its process ended three times before it began"),
        ("lost", 9, "its process is gone"),
    ],
)
def test_every_other_end_is_one_line_where_it_was_watched_and_nowhere_else(
    status: str, step: int, reason: str, handed: list[Run]
) -> None:
    app = press(open_page("overview", **TINY), "Train")
    (run,) = handed
    run.set_state(status, step, reason)
    app.run()
    assert f"**{run.name}:** {reason}." in said(app)
    assert film_of(app) is None
    found = buttons(app)
    assert found[-1] == "put-away"
    assert "training-again" not in found
    assert ("resume" in found) == run.resumable
    app.switch_page(PAGES["heads"].script).run()
    assert run.name not in said(app)
    app.switch_page(PAGES["overview"].script).run()
    app.button(key="put-away").click().run()
    assert run.name not in said(app)


def test_a_training_that_was_followed_is_not_replayed(handed: list[Run]) -> None:
    """By its pace, or because it took longer than a film; its film is there to be asked for."""
    app, run = train_here(handed, pace="1000")
    assert f"**{run.name}:** " in said(app)
    assert film_of(app) is None
    assert buttons(app) == ["training-again", "put-away"]
    run.ask(pace=None)
    assert live._was_quick(run, [{"seconds": live.FILM - 0.1}])
    assert not live._was_quick(run, [{"seconds": live.FILM}])
    assert not live._was_quick(run, [])


def test_a_training_under_way_is_its_pictures_where_it_was_begun_and_a_line_on_other_pages(handed: list[Run]) -> None:
    app = press(open_page("overview", **TINY), "Train")
    (run,) = handed
    with lock.hold(run.folder):
        run.set_state("running", 0)
        app.run()
        played = film_of(app)
        assert played is not None
        assert (played["live"], played["replay"]) == (True, False)
        app.switch_page(PAGES["heads"].script).run()
        assert f"**{run.name}** is training" in said(app)
        assert film_of(app) is None
        run.set_state("stopped", 0, "stopped by hand at step 0")


def test_a_training_that_is_over_has_no_place_beside_races_nor_where_its_model_is_not_shown(
    handed: list[Run],
) -> None:
    app, run = train_here(handed)
    assert run.name in said(end_replay(app))
    for page in ("runs", "lectures", "imported"):
        app.switch_page(PAGES[page].script).run()
        assert buttons(app) == []
    app.switch_page(PAGES["film"].script).run()
    assert buttons(app) == ["put-away"]  # its film stands there


def test_in_a_lecture_the_film_in_place_of_a_training_is_replayed_too(
    lecture: dict[str, str], handed: list[Run]
) -> None:
    app = press(open_page("overview", **lecture), "Train")
    handed[0].set_state("failed", 3, "the loss became NaN")
    app.run()
    played = film_of(app)
    assert played is not None
    assert played["replay"]
    end_replay(app)
    assert film_of(app) is None
    assert "In its place" not in said(app)
    assert "the loss became NaN" in said(app)
    assert "training-again" in buttons(app)
