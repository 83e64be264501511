"""Five questions: each answer against a count or a computation written anew here, and the page that shows them."""

from __future__ import annotations

import base64
import itertools
import json
import re
import threading
import time
from collections.abc import Iterator
from graphlib import CycleError
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard import theme
from dashboard.app_pages.how_it_began.questions import bag, recurrence, residuals, shapes
from dashboard.app_pages.how_it_began.questions.figures.dense_layers import cosine_heatmap, weight_heatmaps
from dashboard.app_pages.how_it_began.questions.figures.residuals import Line, layer_lines, loss_lines
from dashboard.app_pages.how_it_began.questions.figures.schedule import Schedule, Timing, pass_lines, schedule_heatmaps
from dashboard.app_pages.how_it_began.questions.figures.shapes import falk, shapes_to_scale
from dashboard.components.payload import unpack
from dashboard.models import background, no_positions, quick_training
from dashboard.view.pages import PAGES
from dashboard.view.settings import Settings
from transformer import checkpoints
from transformer.analysis.accuracy.bags import bag_ceiling
from transformer.analysis.accuracy.by_position import EVALUATION_STREAM
from transformer.analysis.accuracy.ceilings import reachable
from transformer.analysis.batches import SURVEY_STREAM
from transformer.analysis.sequential.dependencies import moments, waits_for, way
from transformer.analysis.sequential.timing import parameters, same_size, time_passes
from transformer.analysis.stream.dense_layers import compare_feeds, permuted
from transformer.analysis.stream.depth import look_down
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.masks import parse
from transformer.model import build
from transformer.observation import observe
from transformer.training.loop import train
from transformer.training.runs import Run

ROOT = Path(__file__).resolve().parents[4]
PI = [3, 1, 4, 1, 5, 9, 2, 6]
SIZES = list(itertools.product((1, 2, 5), (1, 2, 3)))  # tokens, layers


def causal(length: int) -> np.ndarray:
    return np.arange(length)[:, None] >= np.arange(length)[None, :]


# --- 1: what waits for what


@pytest.mark.parametrize(("length", "layers"), SIZES)
def test_the_moments_are_those_of_the_textbook(length, layers):
    """A staircase, columns, and one token after the other: from the definitions, not from a graph."""
    taken = {kind: moments(waits_for(kind, layers, causal(length))) for kind in ("recurrent", "attention", "writing")}
    for layer, place in itertools.product(range(layers), range(length)):
        assert taken["recurrent"][layer, place] == 1 + layer + place
        assert taken["attention"][layer, place] == 1 + layer
        assert taken["writing"][layer, place] == 1 + place * layers + layer


@pytest.mark.parametrize("kind", ["recurrent", "attention", "writing"])
def test_a_state_is_computed_in_the_first_round_in_which_it_can_be(kind):
    """Round after round, all at once whose parts are there: as a machine with any number of hands would."""
    waits = waits_for(kind, 3, causal(6))
    there = {(0, 0): 0} if kind == "writing" else {(0, place): 0 for place in range(6)}
    for number in range(1, 20):
        ready = [state for state in waits if state not in there and all(other in there for other in waits[state])]
        there |= dict.fromkeys(ready, number)
        there |= {(0, place + 1): number for layer, place in ready if kind == "writing" and layer == 3}  # just said
    taken = moments(waits)
    assert {(layer, place): taken[layer - 1, place] for layer in (1, 2, 3) for place in range(6)} == {
        state: number for state, number in there.items() if state[0] and state[1] < 6
    }


@pytest.mark.parametrize(("length", "layers"), SIZES)
def test_the_way_is_as_long_as_the_textbook_says(length, layers):
    assert way(waits_for("recurrent", layers, causal(length))) == length - 1 + layers
    assert way(waits_for("attention", layers, causal(length))) == layers


@pytest.mark.parametrize("mask", ["causal", "full", "sliding-window:1", "sliding-window:3", "anti-causal", "hide:1"])
@pytest.mark.parametrize("layers", [1, 2, 4])
def test_there_is_a_way_exactly_where_the_mask_lets_something_arrive(mask, layers):
    matrix = parse(mask).matrix(6)
    found = way(waits_for("attention", layers, matrix))
    assert (found == layers) if reachable(matrix, layers)[-1, 0] else (found is None)


def test_nobody_can_write_what_waits_for_itself():
    with pytest.raises(CycleError):
        moments(waits_for("writing", 2, np.ones((3, 3), dtype=bool)))


def test_a_schedule_shows_each_state_once_at_its_moment():
    schedules = [Schedule(kind, moments(waits_for(kind, 2, causal(4)))) for kind in ("attention", "recurrent")]
    figure = schedule_heatmaps(schedules)
    for each, panel in zip(schedules, figure.data, strict=True):
        drawn = np.array(panel.z)
        assert drawn.shape == (4, 5)  # all on the clock of the slowest
        assert np.isfinite(drawn).sum() == 8
        for layer, place in itertools.product(range(2), range(4)):
            assert drawn[place, each.moments[layer, place] - 1] == layer
    assert [re.findall(r"\d+ moments?", note.text) for note in figure.layout.annotations] == [
        ["2 moments"],
        ["5 moments"],
    ]


@pytest.mark.parametrize(("length", "layers"), [(2, 1), (8, 2), (7, 3), (32, 6)])
def test_the_ticks_of_a_schedule_are_regular(length, layers):
    taken = {kind: moments(waits_for(kind, layers, causal(length))) for kind in ("attention", "recurrent", "writing")}
    layout = schedule_heatmaps([Schedule(kind, each) for kind, each in taken.items()]).layout
    for axis, last in ((layout.xaxis3, length * layers), (layout.yaxis, length)):
        ticks = list(axis.tickvals)
        assert {later - tick for tick, later in itertools.pairwise([0, *ticks])} == {ticks[0]}
        assert len(ticks) <= 9
        assert last - ticks[-1] < ticks[0]
    assert layout.margin.t > 30  # over the words on the right, where the buttons come up


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_what_is_timed_is_of_one_size(layers):
    gates, blocks = same_size(layers)
    width = 64
    block = 4 * (width * width + width) + 2 * 4 * width * width + 4 * width + width + 4 * width
    assert parameters(blocks) == layers * block
    assert abs(parameters(gates) / parameters(blocks) - 1) < 0.02


def test_every_length_is_timed():
    found = time_passes(1, (4, 9), torch.device("cpu"), repeats=1)
    assert found.lengths == (4, 9)
    assert found.recurrent.shape == found.attention.shape == (2,)
    assert (found.recurrent > 0).all()
    assert (found.attention > 0).all()
    drawn = pass_lines(found.lengths, [Timing("a", found.attention), Timing("g", found.recurrent)])
    np.testing.assert_allclose(drawn.data[1].y, found.recurrent, rtol=1e-6)


# --- 2: shapes


def softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("sizes", [(3, 5, 4, 6), (1, 1, 1, 1), (7, 2, 12, 1), (2, 12, 3, 9)])
def test_attention_of_any_shape_is_the_formula(sizes):
    queries, keys, d_k, d_v = sizes
    view = Settings(n_queries=queries, n_keys=keys, n_values=keys, d_query=d_k, d_key=d_k, d_value=d_v, d_stream=7)
    tried = shapes.attend(view)
    assert (tried.query.shape, tried.key.shape, tried.value.shape) == ((queries, d_k), (keys, d_k), (keys, d_v))
    pattern = softmax(tried.query.astype(np.float64) @ tried.key.T / np.sqrt(d_k))
    np.testing.assert_allclose(tried.pattern, pattern, atol=1e-5)
    np.testing.assert_allclose(tried.output, pattern @ tried.value, atol=1e-4)
    assert tried.weights == 2 * (7 * d_k + d_k) + (7 * d_v + d_v) + (d_v * 7 + 7)
    assert not tried.broken


@pytest.mark.parametrize(
    ("changes", "wrong", "words"),
    [
        ({"d_query": 5}, ("d_q", "d_k"), "width 5 cannot meet keys of width 4: Q and K must agree in width"),
        ({"n_values": 7}, ("n_k", "n_v"), "5 keys cannot weigh 7 values: K and V must agree in number"),
        ({"n_values": 2, "d_key": 9}, ("d_q", "d_k"), "width 4 cannot meet keys of width 9"),
    ],
)
def test_what_does_not_fit_breaks_with_a_sentence(changes, wrong, words):
    view = Settings(**changes)
    tried, (sides, said) = shapes.attend(view), shapes.misfits(view)
    assert sides == wrong
    assert words in said
    assert tried.output is None
    assert (tried.pattern is None) == (wrong == ("d_q", "d_k"))
    assert "shapes cannot be multiplied" in tried.broken


@pytest.mark.parametrize("palette", [theme.LIGHT, theme.DARK])
def test_matrices_are_drawn_to_scale_and_do_not_meet(palette):
    for view in (Settings(), Settings(n_values=7), Settings(d_query=1), Settings(n_keys=12, n_values=12, d_value=12)):
        tried = shapes.attend(view)
        placed = falk(tried.query, tried.key, tried.value, tried.pattern, tried.output)
        for one, other in itertools.combinations(placed, 2):
            beside = one.right < other.left or other.right < one.left
            assert beside or one.top < other.low or other.top < one.low
        figure = shapes_to_scale(placed, shapes.misfits(view)[0], palette=palette)
        assert figure.layout.yaxis.scaleanchor == "x"
        drawn = {trace.name: np.array(trace.z) for trace in figure.data}
        np.testing.assert_allclose(drawn["Kᵀ"], tried.key.T, atol=1e-6)
        assert ("output" in drawn) == (tried.output is not None)


@pytest.mark.parametrize(("run", "words"), [("compiled", "in its one head."), ("reverse", "in each of 4 heads.")])
def test_heads_are_counted_in_words(run, words):
    app = open_questions(run=run, asked="2")
    assert any(caption.value.endswith(words) for caption in app.caption)


# --- 3: dense layers


def weights_of(run: str, block: str) -> tuple[np.ndarray, ...]:
    model, _ = checkpoints.load(Run(ROOT / "checkpoints" / run).snapshot())
    names = ("up.weight", "up.bias", "down.weight", "down.bias")
    return tuple(model.state_dict()[f"{block}.feed_forward.{name}"].double().numpy() for name in names)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


@pytest.mark.parametrize("run", ["reverse", "reverse-translate"])
def test_cosines_of_layers_are_those_of_their_numbers(run):
    model, config = checkpoints.load(Run(ROOT / "checkpoints" / run).snapshot())
    task = config.build_task()
    found = compare_feeds(model, task, np.array(PI))
    assert len(found.names) == (2 if run == "reverse" else 4)
    batch = task.encode([np.array(PI)])
    source = None if batch.source is None else torch.from_numpy(batch.source)
    seen = observe(model, torch.from_numpy(batch.tokens), source=source)
    first = model.get_submodule(found.names[0])
    read = first.around_feed_forward.before(seen[f"{found.names[0]}.resid_mid"])[0].double().detach().numpy()
    said = []
    for name in found.names:
        w1, b1, w2, b2 = weights_of(run, name)
        said.append(np.array([w2 @ np.maximum(w1 @ x + b1, 0) + b2 for x in read]))
    for (i, one), (j, other) in itertools.product(enumerate(found.names), repeat=2):
        a, b = (np.concatenate([w.ravel() for w in weights_of(run, name)[::2]]) for name in (one, other))
        assert found.cosine[i, j] == pytest.approx(cosine(a, b), abs=1e-5)
        assert found.weights == len(a)
        each = [cosine(x, y) for x, y in zip(said[i], said[j], strict=True)]
        assert found.said[i, j] == pytest.approx(np.mean(each), abs=1e-4)
    drawn = cosine_heatmap(found.cosine, found.names)
    np.testing.assert_allclose(drawn.data[0].z, found.cosine, atol=1e-6)
    np.testing.assert_allclose(weight_heatmaps(found.up, found.names).data[1].z, found.up[1][:48, :48])


def test_one_dense_layer_serves_all_positions_and_one_that_does_not_is_found():
    config = RunConfig(model=ModelConfig(d_model=16, d_ff=24))
    model, task = build(config).eval(), config.build_task()
    assert permuted(model, task, np.array(PI)) < 1e-6

    class Placed(torch.nn.Module):
        def forward(self, x, trace=None):
            return x * torch.arange(x.shape[1])[:, None]

    model.decoder[1].feed_forward = Placed()
    assert permuted(model, task, np.array(PI)) > 0.1


def test_a_model_without_dense_layers_says_so():
    config = RunConfig(model=ModelConfig(d_ff=0))
    with pytest.raises(ConfigError, match="this model has no feed-forward layers"):
        compare_feeds(build(config), config.build_task(), np.array(PI))


# --- 4: residual connections


@pytest.mark.parametrize("residual", [True, False])
def test_depth_is_what_back_propagation_and_the_streams_say(residual):
    config = residuals.deep(3, residual)
    model, task = build(config).eval(), config.build_task()
    found = look_down(model, task, sequences=5)
    assert all(weight.grad is None for weight in model.parameters())

    rng = np.random.default_rng([0, SURVEY_STREAM])
    x = torch.from_numpy(rng.integers(0, 10, (5, 4)))
    y, sep = x.flip(1), torch.full((5, 1), 10)
    tokens = torch.cat([x, sep, y[:, :-1]], dim=1)
    logits = model(tokens).log_softmax(dim=-1)
    # The answer's own tokens, and the separator before them, whose place is known.
    batch = task.encode(list(x.numpy()))
    assert torch.equal(torch.from_numpy(batch.tokens), tokens)
    nats = [
        -logits[row, place, int(batch.targets[row, place])]
        for row, place in zip(*np.nonzero(batch.is_answer), strict=True)
    ]
    (sum(nats) / len(nats)).backward()
    for layer in range(3):
        squares = sum(float(weight.grad.square().sum()) for weight in model.decoder[layer].parameters())
        assert found.gradient[layer] == pytest.approx(squares**0.5, rel=1e-3)

    seen = observe(model, tokens)
    sites = ["decoder.0.resid_pre", *(f"decoder.{layer}.resid_post" for layer in range(3))]
    for boundary, site in enumerate(sites):
        stream, embedded = seen[site].double().numpy(), seen[sites[0]].double().numpy()
        kept = [cosine(stream[b, p], embedded[b, p]) for b in range(5) for p in range(8)]
        alike = [cosine(stream[b, p], stream[b, q]) for b in range(5) for p in range(8) for q in range(8) if p != q]
        assert found.kept[boundary] == pytest.approx(np.mean(kept), abs=1e-4)
        assert found.alike[boundary] == pytest.approx(np.mean(alike), abs=1e-4)


def test_both_are_trained_as_any_model_is(monkeypatch):
    """A step of one and a step of the other: each takes the very steps that it would take alone."""
    monkeypatch.setattr(residuals, "RATES", {"0.005": 4})
    race = residuals.Race(2, "0.005")
    race.wait()
    assert race.done
    assert not race.problem
    for learner, residual in zip(race.learners, (True, False), strict=True):
        assert learner.config.model.residual == residual
        alone = [step.loss for step in train(build(learner.config), learner.config)]
        assert learner.losses == pytest.approx(alone, rel=1e-5)
        assert learner.steps == [1, 2, 3, 4]


def test_a_race_that_runs_away_says_so(monkeypatch):
    monkeypatch.setattr(residuals, "RATES", {"10": 50})
    monkeypatch.setattr("transformer.training.loop.math.isfinite", lambda value: False)
    race = residuals.Race(1, "10")
    race.wait()
    assert "the loss is no longer a number at step 1" in race.problem


def test_whatever_breaks_a_race_is_said(monkeypatch):
    def broken(config):
        raise MemoryError

    monkeypatch.setattr("transformer.model.build", broken)
    race = residuals.Race(1, "0.005")
    race.wait()
    assert race.done
    assert not race.stopped
    assert race.problem == "MemoryError"


@pytest.fixture
def busy() -> Iterator[threading.Event]:
    """Another training goes on until this is set."""
    over = threading.Event()
    background.TRAININGS.submit(over.wait, 30)
    yield over
    over.set()


def test_a_race_is_stopped_and_what_is_learned_stays(monkeypatch):
    monkeypatch.setattr(residuals, "RATES", {"0.005": 100_000})
    race = residuals.Race(1, "0.005")
    while not race.learners[1].steps:
        time.sleep(0.01)
    race.stop()
    assert race.done
    assert race.stopped
    assert not race.problem
    steps = [len(learner.steps) for learner in race.learners]
    assert steps[0] == steps[1] < 100_000
    race.wait()
    assert [len(learner.losses) for learner in race.learners] == steps


def test_a_race_that_waits_says_so_and_can_be_stopped(busy):
    race = residuals.Race(1, "0.005")
    assert race.waiting
    assert residuals._state(race) == "It waits for another training …"
    race.stop()
    assert not race.waiting
    assert race.stopped
    assert residuals._state(race) == "Stopped by hand."
    assert not race.learners[0].steps


def test_a_race_that_is_over_cannot_be_stopped(monkeypatch):
    monkeypatch.setattr(residuals, "RATES", {"0.005": 2})
    race = residuals.Race(1, "0.005")
    race.wait()
    race.stop()
    assert not race.stopped


def test_lines_by_layer_and_by_step_are_the_numbers():
    lines = [Line("with", np.array([1.0, 0.5])), Line("without", np.array([1.0, 0.01]))]
    for figure in (
        layer_lines(lines, across="layer", up="norm", powers=True),
        layer_lines(lines, across="layer", up="cosine"),
        loss_lines(lines, floor=0.2, guess=2.3),
    ):
        assert [trace.name for trace in figure.data] == ["with", "without"]
        np.testing.assert_allclose(figure.data[1].y, [1.0, 0.01], rtol=1e-6)
    assert [shape.y0 for shape in figure.layout.shapes] == [2.3, 0.2]
    empty = loss_lines([Line("with", np.array([]))], floor=0.2, guess=2.3)
    assert any("waiting" in note.text for note in empty.layout.annotations)
    assert isinstance(empty, go.Figure)


# --- the page


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two lengths to time, a few steps to train, and no race is kept for the next test."""
    monkeypatch.setattr(recurrence, "LENGTHS", (4, 8))
    monkeypatch.setattr(residuals, "RATES", {"0.005": 6, "0.001": 4})
    yield
    residuals.race.clear()  # type: ignore[attr-defined]
    recurrence.timed.clear()  # type: ignore[attr-defined]


def open_questions(**query: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "dashboard" / "main.py"), default_timeout=60)
    for name, value in query.items():
        app.query_params[name] = value
    app.switch_page(PAGES["questions"].script).run()
    assert not app.exception
    return app


def link(app: AppTest) -> dict[str, str]:
    return {name: values[0] if isinstance(values, list) else values for name, values in app.query_params.items()}


def drawn(app: AppTest) -> dict[str, dict[str, Any]]:
    """The Plotly figures on the page, by key."""
    messages = [unpack(element.proto.bytes) for element in app.get("bidi_component")]
    return {header["revision"]: json.loads(body) for header, body in messages if "revision" in header}


def array(value: Any) -> np.ndarray:
    if not isinstance(value, dict):
        return np.array(value)
    flat = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
    return flat.reshape([int(n) for n in str(value.get("shape", flat.size)).split(",")])


RUNS = ("reverse", "reverse-aligned-causal", "reverse-translate", "compiled")
FIGURES = {
    "1": {"schedule"},
    "2": {"shapes"},
    "3": {"feeds", "feeds-cosine"},
    "4": {"alike", "gradients"},
    "5": {"bag"},
}


@pytest.mark.parametrize("asked", FIGURES)
@pytest.mark.parametrize("run", RUNS)
def test_every_question_is_answered_for_every_model(run, asked):
    app = open_questions(run=run, asked=asked)
    assert not app.error
    assert not app.warning
    nothing = asked == "3" and run == "compiled"
    assert set(drawn(app)) == (set() if nothing else FIGURES[asked])
    assert re.search(r"\d|no dense layers", app.title[0].value)
    assert link(app)["run"] == run


def test_buttons_lead_from_question_to_question_and_back():
    app = open_questions(run="reverse")
    by_label = {button.label: button for button in app.button}
    assert by_label["Back"].disabled
    for number in "2345":
        next(button for button in app.button if button.label == "Forward").click().run()
        assert not app.exception
        assert link(app)["asked"] == number
    assert next(button for button in app.button if button.label == "Forward").disabled
    next(button for button in app.button if button.label == "Back").click().run()
    assert link(app)["asked"] == "4"


@pytest.mark.parametrize(
    "query", [{"asked": "6"}, {"asked": "nonsense"}, {"asked": "4", "deep_rate": "7"}, {"unrolled": "0"}]
)
def test_what_a_link_names_in_vain_falls_back_with_one_notice(query):
    app = open_questions(run="reverse", **query)
    assert len(app.warning) == 1
    assert link(app) == {"run": "reverse", **({"asked": "4"} if query.get("asked") == "4" else {})}


@pytest.mark.parametrize(("tokens", "layers"), [(8, 2), (32, 6), (2, 1)])
def test_the_title_counts_moments(tokens, layers):
    app = open_questions(run="reverse", unrolled=str(tokens), stacked=str(layers))
    numbers = [int(number) for number in re.findall(r"\d+", app.title[0].value)]
    assert numbers == [tokens, tokens + layers - 1, layers]
    panels = [array(panel["z"]) for panel in drawn(app)["schedule"]["data"]]
    assert [panel.shape for panel in panels] == [(tokens, tokens * layers)] * 3
    assert [int(np.isfinite(panel).sum()) for panel in panels] == [tokens * layers] * 3


def test_passes_are_timed_when_asked_for():
    app = open_questions(run="reverse")
    assert "passes" not in drawn(app)
    next(button for button in app.button if button.label.startswith("Time one pass")).click().run()
    assert not app.exception
    assert link(app) == {"run": "reverse", "timed": "1"}
    lines = drawn(app)["passes"]["data"]
    found = recurrence.timed(2).passes
    np.testing.assert_allclose(array(lines[0]["y"]), found.attention, rtol=1e-6)
    np.testing.assert_allclose(array(lines[1]["y"]), found.recurrent, rtol=1e-6)


def test_a_slider_that_breaks_attention_says_how_and_one_that_mends_it_is_believed():
    app = open_questions(run="reverse", asked="2")
    assert app.title[0].value == "3 queries meet 5 keys: a pattern of 3 × 5, an output of 3 × 6."
    app.slider(key="control-d_query").set_value(9).run()
    assert app.title[0].value == "Queries of width 9 cannot meet keys of width 4: Q and K must agree in width."
    assert "PyTorch says: “mat1 and mat2 shapes cannot be multiplied" in app.error[0].value
    app.slider(key="control-d_key").set_value(9).run()
    assert not app.error
    assert link(app) == {"run": "reverse", "asked": "2", "d_query": "9", "d_key": "9"}


def test_no_slider_of_the_shapes_has_a_name_of_two_lines():
    app = open_questions(run="reverse", asked="2")
    named = [slider.label for slider in app.slider if slider.key in {f"control-{each[1]}" for each in shapes.SLIDERS}]
    assert len(named) == 6
    assert max(map(len, named)) <= len("Queries")


def test_the_title_of_the_dense_layers_is_their_cosine():
    one, other = (np.concatenate([w.ravel() for w in weights_of("reverse", f"decoder.{i}")[::2]]) for i in (0, 1))
    app = open_questions(run="reverse", asked="3")
    assert app.title[0].value.endswith(f"cosine {abs(cosine(one, other)):.2f}.")


def test_both_are_trained_when_asked_for_and_the_title_says_what_came_out():
    app = open_questions(run="reverse", asked="4", deep="2")
    assert "two places come to a cosine of" in app.title[0].value
    next(button for button in app.button if button.label.startswith("Train both")).click().run()
    assert not app.exception
    assert link(app) == {"run": "reverse", "asked": "4", "deep": "2", "parted": "1"}
    race = residuals.race(2, "0.005")
    race.wait()
    app.run()
    assert not app.exception
    shares = [learner.share for learner in race.learners]
    assert f"reach {shares[0]:.2f} in 6 steps, without them {shares[1]:.2f} in 6." in app.title[0].value
    for trace, learner in zip(drawn(app)["parted"]["data"], race.learners, strict=True):
        np.testing.assert_allclose(array(trace["y"]), learner.losses, rtol=1e-6)
    app.slider(key="control-deep").set_value(3).run()
    assert link(app) == {"run": "reverse", "asked": "4", "deep": "3"}  # another model is trained when it is asked for
    assert "parted" not in drawn(app)


def labelled(app: AppTest, label: str) -> Any:
    return next((button for button in app.button if button.label == label), None)


def test_a_race_can_be_stopped_on_the_page_and_begun_anew(busy):
    app = open_questions(run="reverse", asked="4", deep="2")
    labelled(app, "Train both, here and now").click().run()
    assert not app.exception
    assert labelled(app, "Train both, here and now") is None
    assert any("It waits for another training …" in caption.value for caption in app.caption)
    stopped = residuals.race(2, "0.005")
    labelled(app, "Stop").click().run()
    assert not app.exception
    assert residuals.race(2, "0.005") is stopped
    assert stopped.stopped
    assert "two places come to a cosine of" in app.title[0].value  # nothing is measured
    assert "parted" in drawn(app)
    busy.set()
    labelled(app, "Train both, here and now").click().run()
    assert not app.exception
    assert link(app) == {"run": "reverse", "asked": "4", "deep": "2", "parted": "1"}
    again = residuals.race(2, "0.005")
    assert again is not stopped
    again.wait()
    app.run()
    assert "in 6 steps" in app.title[0].value
    assert labelled(app, "Train both, here and now").disabled
    assert labelled(app, "Stop") is None


def test_what_breaks_a_race_is_a_sentence_on_the_page(monkeypatch):
    monkeypatch.setattr(residuals.Race, "_train", lambda race: [].pop())
    app = open_questions(run="reverse", asked="4", parted="1")
    residuals.race(6, "0.005").wait()
    app.run()
    assert not app.exception
    assert [warning.value for warning in app.warning] == ["Pop from empty list."]
    assert not labelled(app, "Train both, here and now").disabled


def test_small_models_that_wait_say_so(busy, monkeypatch):
    monkeypatch.setattr("dashboard.models.background.AT_ONCE", 0.1)
    bag._trained.clear()  # type: ignore[attr-defined]
    app = open_questions(run="reverse", asked="5")
    assert any("Two small models wait for another training" in caption.value for caption in app.caption)


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an untrained recurrent network."""
    root = tmp_path_factory.mktemp("runs")
    config = RunConfig(
        task=TaskConfig(task="reverse-translate"),
        model=ModelConfig(architecture="gru", n_layers=1, d_model=16),
        training=TrainingConfig(device="cpu"),
    )
    run = Run.create(root / "recurrent", config)
    (run.folder / "snapshots").mkdir(exist_ok=True)
    checkpoints.save(run.folder / "snapshots" / "step-000000.safetensors", build(config), config)
    run.set_state("finished", 0)
    return root


@pytest.mark.parametrize("asked", FIGURES)
def test_a_recurrent_network_is_no_stumbling_block(asked, recurrent, monkeypatch):
    monkeypatch.setattr("dashboard.models.menu.ROOT", recurrent)
    monkeypatch.setattr("dashboard.frame.health.strip", lambda *_: None)
    app = open_questions(run="recurrent", asked=asked)
    assert not app.error
    assert set(drawn(app)) == (FIGURES[asked] if asked != "3" else set())


def test_the_bars_of_the_bag_are_the_ceiling_and_a_count():
    """The trained layer, asked here: the sequences that its accuracy is measured on, laid out by hand."""
    app = open_questions(run="reverse", asked="5")
    model = quick_training.trained(no_positions.small("none"), no_positions.SECONDS).model
    rng = np.random.default_rng([no_positions.small("none").training.seed + 1, EVALUATION_STREAM])
    x = torch.from_numpy(rng.integers(0, 10, (no_positions.SEQUENCES, 8)))
    tokens = torch.cat([x, torch.full((len(x), 1), 10), x.flip(1)[:, :-1]], dim=1)
    with torch.no_grad():
        right = (model(tokens).argmax(dim=-1)[:, 8:] == x.flip(1)).double().mean(dim=0).numpy()
    bars = {trace["name"]: trace for trace in drawn(app)["bag"]["data"]}
    np.testing.assert_allclose(array(bars["measured"]["y"]), right, atol=1e-6)
    assert any(caption.value.startswith(f"It has {right.mean():.2f} right.") for caption in app.caption)
    assert app.title[0].value.endswith(f"at most {bag_ceiling(8, 10).mean():.2f} of a reversal.")
