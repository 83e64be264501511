"""The lower half of the mask page: its three pictures, its ways to an output, and the figures that draw them."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import wait
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from dashboard.app_pages.attention.masks import retraining
from dashboard.app_pages.attention.masks import ways as masks_ways
from dashboard.app_pages.attention.masks.figures.accuracy_by_state import State, accuracy_by_state_bars
from dashboard.app_pages.attention.masks.figures.flow import Nodes, Steps, is_merged, path_flow
from dashboard.models.on_the_spot import quick_training
from dashboard.theme import DARK, LIGHT
from tests.kit.pages import array, counted, figures, link, network, open_page, press
from tests.kit.waiting import PATIENCE, wait_for
from transformer import masks
from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.result import Accuracy
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.model import build
from transformer.tasks import TASKS, Ceiling
from transformer.training.loop import Step, Training, TrainingError

FAST = {"live": "0", "sequences": "64"}
NEVER = "It can never arrive, so at most 0.10 can be right."
FAR = "That takes 4 layers, and this model has 2: at most 0.10 can be right."
HOPS, ACROSS = "position 5 or 6, then 3 or 4", "through the encoder and cross-attention"
ALIGNED, NEAR = "reverse-aligned", "sliding-window:2"
CAUSAL8 = [0.1] * 4 + [1.0] * 4


# --- the sentence, known by hand


@pytest.mark.parametrize(
    ("task", "mask", "n_layers", "target", "name", "said"),
    [
        ("reverse", "causal", 2, 12, "y4", "needs the token x5. It can arrive in 1 layer, directly."),
        ("reverse", "causal", 2, 8, "SEP", "needs no token: its position alone decides it."),
        ("reverse", "causal", 2, 2, "x3", f"is the next token of the question itself. {NEVER}"),
        ("reverse", "full", 2, 9, "y1", "needs the token x8. It can arrive in 1 layer, directly."),
        ("reverse", NEAR, 2, 11, "y3", "can copy its own answer from the token y3, in 1 layer: this mask leaks."),
        ("reverse", "hide:8", 2, 9, "y1", f"needs the token x8. {NEVER}"),
        (ALIGNED, NEAR, 2, 3, "y3", "needs the token x6. It can arrive in 2 layers through position 4 or 5."),
        (ALIGNED, NEAR, 2, 1, "y1", f"needs the token x8. {FAR}"),
        (ALIGNED, NEAR, 3, 2, "y2", f"needs the token x7. It can arrive in 3 layers through {HOPS}."),
        ("reverse-translate", "causal", 2, 1, "y1", f"needs the source token x8. It can arrive in 1 layer, {ACROSS}."),
        ("sort", "causal", 2, 9, "y1", "may depend on all 8 tokens of the question. They can arrive in 1 layer."),
        (
            "sort",
            "hide:3",
            2,
            9,
            "y1",
            "may depend on all 8 tokens of the question. 7 of them can arrive, so at most ",
        ),
    ],
)
def test_one_output_in_a_sentence(task: str, mask: str, n_layers: int, target: int, name: str, said: str) -> None:
    found = masks_ways.sentence(TASKS[task](), masks.parse(mask), n_layers, 8, target - 1)
    assert found.startswith(f"Output {name}, said at position {target}, {said}")
    assert found.endswith(said) or said.endswith("at most ")


# --- the page against counts made here


@pytest.mark.parametrize(("run", "mask"), [("reverse-aligned", "causal"), ("reverse", "hide:9")])
def test_the_first_two_pictures_are_counts_under_either_mask(run: str, mask: str) -> None:
    model, config = network(run)
    masked = build(replace(config, model=replace(config.model, mask=mask)))
    masked.load_state_dict(model.state_dict())
    app = open_page("masks", run=run, mask=mask, **FAST)
    drawn = figures(app)["three"]["data"]
    for title, each in (("own mask", model), ("this mask", masked.eval())):
        share = counted(each, config, 64).mean(axis=0)
        chosen = slice(None) if run == "reverse-aligned" else slice(8, None)
        bars = next(t for t in drawn if t["name"].startswith(title) and t["type"] == "bar")
        assert bars["name"] == f"{title}\nanswer: {share[chosen].mean():.2f}"
        np.testing.assert_allclose(array(bars["y"]), share, atol=1e-6)
    ceilings = [array(t["y"]) for t in drawn if t["name"].startswith("ceiling")]
    under = CAUSAL8 if run == "reverse-aligned" else [0.1] * 7 + [1.0] * 9
    own = [1.0] * 8 if run == "reverse-aligned" else under
    for found, expected in zip(ceilings, (own, under, under), strict=True):
        np.testing.assert_allclose(found, expected)
    assert not any(t["name"].startswith("retrained") for t in drawn)
    assert any(button.label == "Retrain under this mask" for button in app.button)


def test_retraining_meets_the_ceiling_and_a_seed_says_what_to_expect() -> None:
    app = open_page("masks", run="reverse", **FAST)
    app.button(key="seed-causal").click().run()
    assert not app.exception
    assert link(app) == {"run": "reverse-aligned", "mask": "causal", "target": "2"} | FAST
    assert "Expect the ceiling to fall for the first half" in app.info[0].value
    assert any("can never arrive, so at most 0.10 can be right" in text.value for text in app.markdown)
    press(app, "Retrain under this mask")
    bars = next(t for t in figures(app)["three"]["data"] if re.match(r"retrained, \d+ steps\nanswer: 0.5\d", t["name"]))
    measured, error = array(bars["y"]), 4 * np.sqrt(0.1 * 0.9 / 1024)
    assert (measured[4:] > 0.97).all()
    assert (np.abs(measured[:4] - 0.1) < error).all()
    assert any(": at its ceiling" in text.value for text in app.markdown)


@pytest.mark.daily(1)
@pytest.mark.parametrize("run", ["reverse", "reverse-aligned-causal"])
def test_under_its_own_causal_mask_a_model_is_retrained_to_its_ceiling_however_slow_the_clock(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = count()
    monkeypatch.setattr("transformer.training.loop.time.perf_counter", lambda: 1000.0 * next(ticks))
    app = open_page("masks", run=run, mask="causal")
    assert any("at its ceiling, and not above it." in text.value for text in app.markdown)
    assert not any(button.label.startswith("Train up to") for button in app.button)


def test_a_retraining_is_shown_as_it_grows_and_only_a_finished_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.models.background.AT_ONCE", 0.0)
    goes_on, took = threading.Event(), Training.take_step

    def slow(training: Training) -> Step:
        if training.step == 10:
            goes_on.wait(PATIENCE)
        return took(training)

    monkeypatch.setattr(Training, "take_step", slow)
    app = open_page("masks", run="reverse-aligned", mask="hide:2", patience="1900")
    lesson = app.session_state["lesson-retraining"]
    wait_for("ten steps of the training", lambda: len(lesson.steps), lambda steps: steps == 10)
    app.run()
    assert any("A small model is being retrained: 10 steps, 0." in text.value for text in app.markdown)
    assert any(each["name"].startswith("retraining, 10 steps\nanswer: 0.") for each in figures(app)["three"]["data"])
    # Another mask is asked for: nobody watches the first one, which is broken off and forgotten.
    app.session_state["settings"] = app.session_state["settings"].with_(mask="hide:3")
    app.run()
    goes_on.set()
    wait([lesson.future, app.session_state["lesson-retraining"].future])
    assert not lesson.future.cancelled()
    assert len(lesson.steps) == 11
    again = quick_training.take(lesson.config)
    assert again is not lesson
    wait_for("it is begun anew", lambda: again.steps)
    again.leave()
    app.run()
    over = app.session_state["lesson-retraining"]
    assert over.result().solved
    assert quick_training.take(over.config) is over  # and kept
    assert any(re.match(r"retrained, \d+ steps\n", each["name"]) for each in figures(app)["three"]["data"])


def test_what_breaks_a_retraining_is_a_sentence_and_is_kept_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(training: Training) -> Step:
        raise TrainingError("the loss is no longer a number")

    with monkeypatch.context() as patched:
        patched.setattr(Training, "take_step", broken)
        app = open_page("masks", run="reverse-aligned", mask="hide:4", patience="1800")
        lesson = app.session_state["lesson-retraining"]
        assert [warning.value for warning in app.warning] == ["The loss is no longer a number."]
    again = quick_training.take(lesson.config)
    assert again is not lesson
    wait_for("it is begun anew", lambda: again.steps)
    again.leave()
    app.run()
    assert [warning.value for warning in app.warning] == ["The loss is no longer a number."]  # who saw it keeps it


def test_what_somebody_else_still_watches_is_not_broken_off() -> None:
    config = quick_training.small(RunConfig(), mask="prefix:3")
    one, other = quick_training.take(config), quick_training.take(config)
    assert one is other
    one.leave()
    assert other.result().solved
    other.leave()


@pytest.mark.daily(1)
@pytest.mark.parametrize("run", ["reverse", "reverse-translate", "compiled"])
def test_the_ways_are_drawn_for_every_model(run: str) -> None:
    app = open_page("masks", run=run, mask="causal", target="3", **FAST)
    config = network(run)[1]
    traces = figures(app)["flow"]["data"]
    nodes = [t for t in traces if t.get("mode") == "markers"]
    stacks = 2 if config.model.architecture == "encoder-decoder" else 1
    assert len(nodes) == stacks * (config.model.n_layers + 1)
    assert nodes[-1]["meta"] == "output"
    assert nodes[-1]["customdata"] == list(range(len(nodes[-1]["y"])))
    assert app.selectbox(key="control-target").value == 2
    app.selectbox(key="control-target").set_value(5).run()
    assert link(app)["target"] == "6"


def test_an_output_that_is_not_there_falls_back_with_one_notice() -> None:
    app = open_page("masks", run="reverse-aligned", target="17", **FAST)
    assert len(app.warning) == 1
    assert link(app) == {"run": "reverse-aligned"} | FAST
    assert app.selectbox(key="control-target").value == 0


def test_the_full_model_can_be_asked_for() -> None:
    app = open_page("masks", run="reverse-aligned", mask="sliding-window:3", **FAST)
    press(app, "Train in full")
    assert (link(app)["task"], link(app)["train_mask"]) == ("reverse-aligned", "sliding-window:3")


# --- the laws of the words


def measured(correct: list[int], sequences: int = 1000) -> Accuracy:
    names = tuple(f"y{i + 1}" for i in range(len(correct)))
    return Accuracy(np.array(correct), sequences, names, ("second half",) * len(names), 0.1, 0)


def test_above_the_ceiling_is_four_standard_errors_above_it() -> None:
    ceiling = Ceiling.of(np.array([0.1, 0.1, 1.0, 1.0]), np.zeros(4))
    # 0.1 of 1,000: one standard error is 9.5, so 138 is within four of it and 150 is not.
    found = measured([130, 160, 1000, 900])
    assert retraining.beyond(found, ceiling).tolist() == [False, True, False, False]
    assert retraining.short_of(found, ceiling).tolist() == [False, False, False, True]
    assert "something leaks" not in retraining.joined(masks.parse("causal"), ceiling, found, found, None)


def test_the_small_model_has_as_few_layers_as_have_the_ceiling_of_all() -> None:
    config = RunConfig(task=TaskConfig(task="reverse-aligned"), model=ModelConfig(n_layers=4))
    layers = {"full": 1, "causal": 1, "sliding-window:2": 4, "sliding-window:4": 2, "sliding-window:3": 3}
    for mask, few in layers.items():
        assert retraining.small_version(config, masks.parse(mask), 8).model.n_layers == few


@pytest.mark.parametrize(
    ("task", "length", "target", "said"),
    [
        (
            "reverse-aligned", 8, 5,
            "Output y6, said at position 6, needs the token x3. It can arrive in 1 layer, directly. The model is not "
            "told the length, so the best guess is right 0.43 of the time.",
        ),
        (
            "reverse", 8, 5,
            f"Output x7, said at position 6, is the next token of the question itself. {NEVER} The model is not told "
            "the length, so the best guess is right 0.00 of the time.",
        ),
        (
            "reverse", 5, 4,
            "Output SEP, said at position 5, ends the question, and no token that may be seen shows for certain "
            "where that is.",
        ),
        ("reverse", 8, 7, "Output SEP, said at position 8, needs no token: its position alone decides it."),
    ],
)  # fmt: skip
def test_where_lengths_vary_the_words_say_what_is_not_told(task: str, length: int, target: int, said: str) -> None:
    found = masks_ways.sentence(TASKS[task](length=8, min_length=4), masks.parse("causal"), 2, length, target)
    assert found == said


def test_where_lengths_vary_as_much_can_be_known_as_the_best_guess_knows() -> None:
    aligned, reverse = (TASKS[task](length=8, min_length=4) for task in ("reverse-aligned", "reverse"))
    causal = masks.parse("causal")
    ceiling = ceilings.ceiling_of_mask(aligned, causal, 2)
    found = measured([100, 100, 100, 100, 300, 250, 200, 1000])
    assert not retraining.beyond(found, ceiling).any()
    assert not retraining.short_of(found, ceiling).any()
    assert retraining.joined(causal, ceiling, found, found, None).startswith(
        "Under the causal mask, 1 of 8 answers can be known: the best guess, which does not know the length, "
        "has 0.35 of the answer right. "
    )
    ceiling = ceilings.ceiling_of_mask(reverse, causal, 2)
    found = Accuracy(np.zeros(16, dtype=np.int64), 1000, reverse.target_names(8), reverse.groups(8), 0.1, 0)
    assert "8 of 8 answers can be known: at most 1.00 of the answer can be right." in retraining.joined(
        causal, ceiling, found, found, None
    )


# --- figures


def drawn(n: int) -> tuple[list[Nodes], list[Steps]]:
    """Two columns under a causal mask; the first token is needed by the last."""
    labels, last = [f"t{i}" for i in range(n)], np.arange(n) == n - 1
    steps = Steps(0, 1, np.tri(n, dtype=bool) & ~np.eye(n, dtype=bool) & last[:, None], np.diag(last))
    first = np.arange(n) == 0
    return [Nodes("in", labels, np.ones(n, bool), first), Nodes("out", labels, last, last)], [steps]


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_a_flow_has_a_line_a_step_and_marks_the_needed_one(palette) -> None:
    columns, steps = drawn(8)
    figure = path_flow(columns, steps, 7, outputs=columns[1].labels, height=300, palette=palette)
    json.loads(figure.to_json())
    lines = {t.name: int(np.isnan(t.x).sum()) for t in figure.data if t.mode == "lines"}
    assert lines == {"other attention": 6, "other straight": 1, "needed attention": 1}
    needed = next(t for t in figure.data if t.name == "needed attention")
    assert (needed.y[0], needed.y[-2]) == (0, 7)
    assert figure.data[-1].marker.color[7] == palette.right
    assert not is_merged(columns)


def test_a_flow_of_many_tokens_is_bands_and_fewer_names() -> None:
    columns, steps = drawn(64)
    figure = path_flow(columns, steps, 63, outputs=columns[1].labels, height=620)
    assert is_merged(columns)
    assert [t.name for t in figure.data if t.fill == "toself"] == ["other band", "needed band"]
    assert not any(t.mode == "lines" for t in figure.data)
    assert 2 * 20 < len(figure.layout.annotations) <= 2 * 34


@pytest.mark.parametrize(("n", "needed", "target"), [(16, 4, 8), (40, 17, 39), (128, 50, 60), (512, 17, 511)])
def test_names_beside_a_flow_never_touch_and_have_their_room(n: int, needed: int, target: int) -> None:
    """As many as stand clear of each other, the target and both ends of what is needed among them."""
    words = ["antony", "␣", "mis…ke", ",", "OCT…US", "MMM…MM"]
    labels, places = [words[i % 6] for i in range(n)], np.arange(n)
    ways = (places <= target) & (places > target - needed)
    last = places == target
    steps = Steps(0, 1, last[:, None] & ways[None, :], np.diag(last))
    height = min(620, 60 + 27 * n)
    columns = [Nodes("in", labels, ways, ways), Nodes("out", labels, last, last)]
    figure = path_flow(columns, [steps], target, outputs=labels, height=height)
    margin, (bottom, top) = figure.layout.margin, figure.layout.yaxis.range
    pixels = (height - margin.t - margin.b) / (bottom - top)
    for column, room, kept in ((0, margin.l, {target, target - needed + 1}), (1, margin.r, {target})):
        named = [each for each in figure.layout.annotations if each.x == column and each.xanchor != "center"]
        rows = sorted(each.y for each in named)
        assert kept <= set(rows)
        assert min(np.diff(rows)) * pixels >= 16  # a line of letters of 14 pixels
        assert max(np.diff(rows)) * pixels < 60
        for each in named:
            text = re.sub("<.?b>", "", each.text)
            assert text == labels[each.y]
            wide = sum({"m": 11.6, "M": 12.2, "…": 13, "O": 9.6}.get(c, 9 if c.isupper() else 7.2) for c in text)
            assert abs(each.xshift) + wide <= room


def test_three_pictures_share_a_scale_and_mark_one_output() -> None:
    ceiling, accuracy = np.array([0.1, 1.0]), np.array([0.1, 0.5])
    states = [State("one", np.ones(2), accuracy, accuracy - 0.1, accuracy + 0.1, 100), State("two", ceiling)]
    figure = accuracy_by_state_bars(states, 0.1, ["y1", "y2"], target=1)
    assert figure.layout.yaxis.range == figure.layout.yaxis2.range == (0, 1.08)
    assert figure.layout.xaxis.domain[1] < figure.layout.xaxis2.domain[0]
    bars = next(t for t in figure.data if t.name == "one")
    np.testing.assert_allclose(bars.error_y.array, 0.1, atol=1e-6)
    assert bars.marker.line.width == (0, 3)
    rim = next(t for t in figure.data if t.name == "rim: two")
    np.testing.assert_allclose(rim.x, [-0.5, 0.5, 0.5, 1.5])
    np.testing.assert_allclose(rim.y, [0.1, 0.1, 1.0, 1.0])
    assert not any(t.name == "two" for t in figure.data)
