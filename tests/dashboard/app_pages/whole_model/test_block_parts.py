"""Other parts on the page "Inside a block": what is said of feed-forward, dropout, parameters and logits, by hand."""

from __future__ import annotations

import json
import re
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from dashboard import theme
from dashboard.app_pages.whole_model.block.dropout import range_sentence
from dashboard.app_pages.whole_model.block.figures.dropout import copies_bars, passes_dots
from dashboard.app_pages.whole_model.block.figures.feed_forward import firing_histogram
from dashboard.app_pages.whole_model.block.figures.logits import token_panels, vector_bars
from dashboard.app_pages.whole_model.block.logits import MOST, rows
from tests.kit.figures import decoded, sent
from tests.kit.heads_by_hand import double, normed
from tests.kit.pages import (
    PI,
    array,
    figures,
    laid_out,
    link,
    network,
    open_page,
    page_to_read,
    press,
    sample,
    trace,
    words,
)
from tests.kit.runs import tiny
from transformer import checkpoints
from transformer.analysis.batches import questions
from transformer.analysis.sample import say
from transformer.analysis.stream.dropout import Passes
from transformer.analysis.stream.hidden_units import count_firing, fire
from transformer.foundation.words import listed
from transformer.model import build
from transformer.training.recording import record
from transformer.training.runs import Run

PALETTES = [theme.LIGHT, theme.DARK]


def own_logits(run: str, step: int | None = None) -> np.ndarray:
    """What a run says of its example while it reads its own words, float [position, token]."""
    model, _, tokens, source = sample(run, step)
    with torch.no_grad():
        return double(model(tokens, source)[0])


def shares_of(logits: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    powers = np.exp(logits / temperature - (logits / temperature).max())
    return powers / powers.sum()


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ({"task": "reverse", "length": 3}, {"norm": "post", "positions": "alibi", "dropout": 0.2}),
        ({"task": "reverse-translate", "length": 3, "min_length": 1}, {"d_ff": 0, "norm": "none", "positions": "none"}),
        ({"task": "reverse-aligned", "length": 1}, {"positions": "sinusoidal", "n_layers": 1}),
        ({"task": "reverse", "length": 3}, {"residual": False}),
        ({"task": "copy", "length": 40}, {"positions": "rotary", "tied": True, "n_layers": 3}),
    ],
)
def test_each_part_opens_on_unusual_models(task, changes, alone):
    alone(task, **changes)
    for part in ("dropout", "parameters", "logits"):
        for query in ({}, {"query": "1", "dropped": "0", "softened": "0.1"}):
            app = open_page("block", run="one", part=part, **query)
            assert not app.warning
            assert not app.error
            if part == "dropout" and "dropout" in changes:
                assert "one was trained with dropout 0.2." in words(app)


# Feed-forward


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("run", "block", "place", "sequences"),
    [
        ("shakespeare", "decoder.3", 17, 53),
        ("reverse", "decoder.1", 11, 256),
        ("reverse-translate", "decoder.0", 3, 256),
        ("reverse-translate", "encoder.1", 8, 256),
    ],
)
def test_units_that_fire_here_and_how_often_are_told(run, block, place, sequences):
    """What the library counts, which its own tests hold against the weights."""
    model, config = network(run)
    task = config.build_task()
    said = say(model, task, task.example) if task.lawful else None
    found = fire(model, task, task.example, block, place - 1, said=said)
    here, lengths = found.hidden, found.lengths
    firing = count_firing(model, questions(task, sequences, task.surveyed, 0)[0], block)
    shares = firing.shares
    app = open_page("block", run=run, part="feed_forward", block=block, query=str(place))
    drawn = trace(app, "units", "here")
    order = np.argsort(-here)[:12]
    np.testing.assert_allclose(array(drawn["x"]), here[order], atol=1e-4)
    assert drawn["text"] == [f"unit {unit}" for unit in order]
    np.testing.assert_allclose(array(trace(app, "units", "often")["x"]), shares[order], atol=2e-3)
    counts = array(trace(app, "firing", "units")["y"])
    assert counts.sum() == (shares > 0).sum()
    edges = np.linspace(0, 1, 21)
    mine = [((shares > 0) & (shares >= low) & (shares < high)).sum() for low, high in pairwise(edges)]
    assert np.abs(counts - mine).sum() <= 4  # a share on the edge of a bin, by rounding
    title = app.title[0].value
    assert title.startswith(f"{(here > 0).sum()} of {len(here)} hidden units fire at ")
    dead = f"{firing.never} never fire{'s' * (firing.never == 1)} in {firing.positions:,} positions."
    assert title.endswith(dead if firing.never else f"every unit fires somewhere in {firing.positions:,} positions.")
    assert f"here {(here > 0).sum()} do, and {(here == 0).sum()} are 0" in words(app)
    assert f"over {firing.positions:,} positions of {sequences} " in words(app)
    assert f"Unit {order[0]} is the strongest here, with {here[order[0]]:.2f}." in words(app)
    assert f"the longest vector, of length {lengths.max():.2f}" in words(app)
    assert ("It also writes" in words(app)) == (lengths.argmax() == order[0])


def test_a_model_without_feed_forward_layers_says_so():
    app = open_page("block", run="compiled", part="feed_forward")
    assert app.title[0].value == "compiled has no feed-forward layers, so there are no hidden units."
    assert not figures(app)


# Dropout


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("run", "trained"),
    [
        ("compiled", "was written by hand: no training, and so no dropout."),
        ("reverse", "was trained with dropout 0: for it the two modes were the same."),
        ("reverse-translate", "was trained with dropout 0: for it the two modes were the same."),
    ],
)
def test_evaluation_mode_repeats_the_models_own_probabilities(run, trained):
    shares = np.array([shares_of(each).max() for each in own_logits(run)])[-8:]
    app = open_page("block", run=run, part="dropout")
    assert f"{run} {trained}" in words(app)
    drawn = array(trace(app, "dropout-passes", "evaluation mode, 10 passes")["y"]).reshape(10, 8)
    np.testing.assert_allclose(drawn, np.broadcast_to(shares, drawn.shape), atol=1e-5)
    assert (drawn == drawn[0]).all()
    training = array(trace(app, "dropout-passes", "training mode, 10 passes")["y"]).reshape(10, 8)
    apart = np.ptp(training, axis=0)
    title = app.title[0].value
    assert title.startswith("With dropout 0.1, 10 passes of one input in training mode give probabilities up to ")
    assert float(re.search(r"up to ([\d.]+) apart", title)[1]) == pytest.approx(apart.max(), abs=0.006)
    assert title.endswith("in evaluation mode all 10 passes agree to the last bit.")
    first = len(own_logits(run)) - 8
    widest = [each for each in range(8) if f"{apart[each]:.2f}" == f"{apart.max():.2f}"]
    if len(widest) > 1:
        places = listed([str(first + each + 1) for each in widest])
        assert f"ranges most widely at outputs {places}, by {apart.max():.2f} at each." in words(app)
        return
    low, high = training[:, widest[0]].min(), training[:, widest[0]].max()
    assert f"The widest range is at output {first + widest[0] + 1}" in words(app)
    assert f"gets {low:.2f} to {high:.2f} in training mode" in words(app)


@pytest.mark.parametrize(
    ("highs", "said"),
    [
        ((0.4, 0.9), "The widest range is at output 4: 'b' gets 0.20 to 0.90 in training mode."),
        ((0.4, 0.401), "In training mode the probability ranges as widely at all 2 outputs, by 0.20."),
        ((0.9, 0.2, 0.9), "In training mode the probability ranges most widely at outputs 3 and 5, by 0.70 at each."),
        ((0.2, 0.203), "In training mode no probability here changes by as much as 0.005."),
        ((0.9,), "At output 3 'a' gets 0.20 to 0.90 in training mode."),
    ],
)
def test_the_widest_range_is_said_of_all_outputs_that_have_it(highs: tuple[float, ...], said: str) -> None:
    n = len(highs)
    training = np.array([[0.0, 0.0, *[0.2] * n], [0.0, 0.0, *highs]])
    found = Passes(0.1, np.arange(n + 2), training, training, np.ones(n + 2, dtype=int), False, True)
    outputs = "1 output" if n == 1 else f"{n} outputs"
    assert range_sentence(found, np.arange(2, n + 2), list("abc"[:n])) == (
        f"{said} In {n} of {2 * n} predictions ({outputs} × 2 passes) training mode prefers another token."
    )


def test_what_training_mode_prefers_is_counted():
    """The same passes by hand: a twin of the model in training mode, drawing with the page's seed."""
    model, config = network("compiled")
    tokens, _, _ = laid_out(config, np.array([PI]))
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.4
    model.eval()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        predicted = model(tokens)[0].argmax(-1)
        model.train()
        torch.manual_seed(5)
        changed = sum(int((model(tokens)[0].argmax(-1) != predicted)[-8:].sum()) for _ in range(10))
    app = open_page("block", run="compiled", part="dropout", dropped="0.4", dropout_seed="5")
    assert f"In {changed} of 80 predictions (8 outputs × 10 passes)" in words(app)


def test_without_dropout_the_two_modes_are_the_same():
    app = open_page("block", run="reverse", part="dropout", dropped="0")
    assert app.title[0].value == "With dropout 0 both modes are the same: all 20 passes agree to the last bit."
    assert "each times 1/(1 − 0) = 1.00" in words(app)
    assert "The mean of 1,000 copies is 0.000 of the vector’s length away" in words(app)


def test_another_draw_drops_others_and_only_in_training_mode():
    app = open_page("block", run="reverse", part="dropout")
    before = figures(app)["dropout-passes"]["data"]
    press(app, "Drop others")
    after = figures(app)["dropout-passes"]["data"]
    assert link(app)["dropout_seed"] == "1"
    assert (array(before[0]["y"]) != array(after[0]["y"])).any()
    np.testing.assert_array_equal(array(before[1]["y"]), array(after[1]["y"]))


def test_the_slider_sets_the_rate_and_each_copy_of_a_vector_is_0_or_larger_while_their_mean_is_the_vector():
    app = open_page("block", run="compiled", part="dropout")
    app.slider(key="control-dropped").set_value(0.5).run()
    assert link(app)["dropped"] == "0.5"
    assert app.title[0].value.startswith("With dropout 0.5, ")
    vector, one, mean = (array(each["y"]) for each in figures(app)["dropout-copies"]["data"])
    kept = one != 0
    np.testing.assert_allclose(one[kept], 2 * vector[kept], rtol=1e-5)
    assert f"One copy keeps {kept.sum()} of its {np.count_nonzero(vector)} numbers that are not 0" in words(app)
    off = np.linalg.norm(mean - vector) / np.linalg.norm(vector)
    assert f"The mean of 1,000 copies is {off:.3f} of the vector’s length away from it" in words(app)
    assert off < 5 / np.sqrt(1000)
    app.slider(key="control-dropped").set_value(0.1).run()
    assert "dropped" not in link(app)
    assert not app.error  # the model of others is left in evaluation mode


# Parameters


@pytest.mark.daily(3)
@pytest.mark.parametrize("run", ["reverse", "reverse-translate", "reverse-sinusoidal", "shakespeare", "compiled"])
def test_the_title_counts_the_parameters_and_the_table_adds_up(run):
    model, _ = network(run)
    numbers, tensors = sum(p.numel() for p in model.parameters()), len(list(model.parameters()))
    app = open_page("block", run=run, part="parameters")
    buffers = len(list(model.buffers()))
    assert app.title[0].value.startswith(f"{run} has {numbers:,} parameters in {tensors} tensors, and {buffers} buffer")
    table = app.dataframe[0].value.set_index("tensor")
    kind = table["kind"]
    shared = table.loc["unembedding.weight", "numbers"] if run == "shakespeare" else 0
    assert table["numbers"][kind == "parameter"].sum() - shared == numbers
    assert list(table.index[table["in state_dict"]]) == list(model.state_dict())
    assert set(table.index[kind == "buffer"]) == {name for name, _ in model.named_buffers()}
    assert ("one matrix with two names" in words(app)) == (run == "shakespeare")
    assert ("moved" in table) == ("written by hand: there is no step 0" not in words(app)) == (run != "compiled")
    if run == "reverse-sinusoidal":
        assert "The sinusoidal positions are a buffer" in words(app)
        assert "They have moved by exactly 0." in words(app)
        assert table.loc["positions.table", "moved"] == 0


@pytest.mark.daily(2)
@pytest.mark.parametrize("step", [0, 13, 40])
def test_the_movement_follows_the_step_of_the_sidebar(step):
    now, before = (network("reverse", each)[0].state_dict() for each in (step, 0))
    app = open_page("block", run="reverse", step=str(step), part="parameters")
    table = app.dataframe[0].value.set_index("tensor")
    moved = {}
    for name, tensor in now.items():
        one, other = tensor.double().numpy(), before[name].double().numpy()
        distance, began = np.sqrt(((one - other) ** 2).sum()), np.sqrt((other**2).sum())
        assert table.loc[name, "‖W − W₀‖"] == pytest.approx(distance, abs=1e-9)
        if began:
            moved[name] = distance / began
            assert table.loc[name, "moved"] == pytest.approx(moved[name], abs=1e-9)
        else:
            assert np.isnan(table.loc[name, "moved"]) or distance == 0
    assert table.loc["visible", "‖W − W₀‖"] == 0
    learned = f"At step {step} they have moved by {moved['positions.table']:.3f} of their initial length"
    assert (learned if step else "nothing has moved yet") in words(app)


def test_while_a_training_is_watched_its_newest_weights_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A training on another machine that shares the folder: three steps are taken, and it goes on."""
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)
    run = Run.create(tmp_path / "under-way", tiny(max_steps=3))
    for _ in record(run):
        pass
    state = {"status": "running", "step": 3, "heartbeat": time.time(), "host": "elsewhere"}
    (run.folder / "state.json").write_text(json.dumps(state))
    app = open_page("block", {"watched": "under-way"}, run="compiled", part="parameters")
    assert "under-way, in training: its newest weights" in words(app)
    last = max(run.snapshots())
    assert f"under-way at step {last}, compared with" in words(app)
    now, before = checkpoints.load(run.snapshot(last))[0].state_dict(), build(run.config).state_dict()
    table = app.dataframe[0].value.set_index("tensor")
    for name, tensor in now.items():
        assert table.loc[name, "‖W − W₀‖"] == pytest.approx(float((tensor.double() - before[name].double()).norm()))


# Logits


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("run", "query", "temperature"),
    [
        ("reverse", {"step": "0"}, 2.5),
        ("reverse", {}, 1.0),
        ("reverse-translate", {}, 2.5),
        ("compiled", {}, 1.0),
    ],
)
def test_logits_probabilities_and_gradient_are_those_of_the_model(run, query, temperature):
    logits = own_logits(run, 0 if "step" in query else None)
    place, target = len(logits) - 8, PI[-1]
    softened = {} if temperature == 1 else {"softened": str(temperature)}
    app = page_to_read("block", run=run, part="logits", **query, **softened)
    shares, trained = shares_of(logits[place], temperature), shares_of(logits[place])
    order = np.argsort(-shares, kind="stable")
    np.testing.assert_allclose(array(trace(app, "logits-tokens", "logit")["x"]), logits[place][order], atol=1e-4)
    drawn = array(trace(app, "logits-tokens", "probability")["x"])
    np.testing.assert_allclose(np.sort(drawn), np.sort(shares), atol=1e-5)
    assert drawn.sum() == pytest.approx(1, abs=1e-5)
    gradient = trained - (np.arange(len(trained)) == target)
    drawn = array(trace(app, "logits-tokens", "gradient of the loss")["x"])
    np.testing.assert_allclose(np.sort(drawn), np.sort(gradient), atol=1e-5)
    cost, said, title = -np.log(trained[target]), trained.argmax(), app.title[0].value
    if temperature == 1:
        assert title.startswith(f"Output {place + 1} says '{said}' with probability ")
        if said != target:
            assert title.endswith(f"the right token '{target}' gets {trained[target]:.3f} and costs {cost:.3f} nats.")
        if cost >= 0.0005:
            assert f"costs {cost:.3f} nats" in title
    else:
        assert title.startswith(f"At temperature {temperature:g}, output {place + 1} says '{said}' with probability ")
        assert f"{shares.max():.3f}" in title
        assert said == target or title.endswith(f"the right token '{target}' with {shares[target]:.3f}.")
    if cost >= 0.0005:
        assert f"That costs {cost:.3f} nats" in words(app)
    assert f"has the logit {logits[place][target]:.2f}".replace("-", "−") in words(app)


def test_outside_the_answer_there_is_no_right_token_and_no_gradient():
    app = open_page("block", run="reverse", part="logits", query="3")
    assert app.title[0].value.endswith("; it is not part of the answer.")
    assert "Output 3 is not part of the answer: no right token is marked, and no loss is shown." in words(app)
    assert {each["name"] for each in figures(app)["logits-tokens"]["data"]} == {"logit", "probability"}


def test_of_a_text_the_likeliest_words_stand_first_and_the_others_share_a_bar():
    logits, passage = own_logits("shakespeare")[-1], network("shakespeare")[1].build_task().example
    shares, target = shares_of(logits), int(passage[-1])
    order = np.argsort(-shares)[:MOST].tolist()
    if target not in order:
        order[-1] = target
    app = open_page("block", run="shakespeare", part="logits")
    bars = trace(app, "logits-tokens", "probability")
    np.testing.assert_allclose(array(bars["x"])[:MOST], shares[order], atol=1e-5)
    assert array(bars["x"])[MOST] == pytest.approx(1 - shares[order].sum(), abs=1e-5)
    assert bars["customdata"][-1] == f"{len(shares) - MOST:,} others"
    gradient = array(trace(app, "logits-tokens", "gradient of the loss")["x"])
    assert gradient.sum() == pytest.approx(0, abs=1e-5)
    assert f"costs {-np.log(shares[target]):.3f} nats" in app.title[0].value


def test_the_vectors_are_the_stream_and_what_the_norm_makes_of_it():
    app = page_to_read("block", run="reverse", part="logits")
    stream, vector = (array(each["y"]) for each in figures(app)["logits-vectors"]["data"])
    model, _ = network("reverse")
    np.testing.assert_allclose(normed(stream, model.final_norm), vector, atol=1e-4)
    weight, bias = (double(model.get_parameter(f"unembedding.{name}")) for name in ("weight", "bias"))
    np.testing.assert_allclose(weight @ vector + bias, own_logits("reverse")[8], atol=1e-3)
    app = page_to_read("block", run="compiled", part="logits")
    assert len(figures(app)["logits-vectors"]["data"]) == 1
    assert "This model has no final norm" in words(app)


# Figures


def test_units_that_never_fire_are_a_bar_of_their_own():
    figure = firing_histogram(np.array([0, 0, 0.01, 0.5, 0.52, 1.0]))
    assert figure.data[1].y[0] == 2
    assert sum(figure.data[0].y) == 4
    assert figure.data[0].y[10] == 2
    assert figure.data[0].y[-1] == 1


@pytest.mark.parametrize("palette", PALETTES)
def test_the_right_token_is_ticked_and_coloured(palette):
    logits, shares = np.array([2.0, 1.0, np.nan]), np.array([0.6, 0.3, 0.1])
    figure = token_panels(["<b>", "b", "7 others"], logits, shares, np.array([-0.4, 0.3, 0.1]), 0, palette=palette)
    assert figure.layout.yaxis.ticktext[0] == "&lt;b&gt; ✓"
    assert figure.data[0].marker.color[0] == palette.right
    assert set(figure.data[0].marker.color[1:]) == {palette.measured}
    assert sent(figure, "logit")["text"] == ["2.0", "1.0", ""]
    assert sent(figure, "gradient of the loss")["text"] == ["−0.400", "0.300", "0.100"]
    assert figure.layout.xaxis2.range[0] == 0
    assert len(token_panels(["a"], logits[:1], shares[:1], None, None, palette=palette).data) == 2


def test_the_right_token_has_a_row_of_its_own_however_unlikely_it_is():
    shares = np.arange(100.0)[::-1] / 4950
    assert rows(shares, None).tolist() == list(range(MOST))
    assert rows(shares, 70).tolist() == [*range(MOST - 1), 70]
    assert rows(shares[: MOST + 1], 3).tolist() == list(range(MOST + 1))


@pytest.mark.parametrize("palette", PALETTES)
def test_each_mode_has_its_dots_beside_the_output(palette):
    training, evaluation = np.array([[0.1, 0.9], [0.3, 0.7]]), np.array([[0.2, 0.8], [0.2, 0.8]])
    figure = passes_dots(training, evaluation, ["1", "<i>"], palette=palette)
    first, second = figure.data
    np.testing.assert_allclose(first.y, [0.1, 0.9, 0.3, 0.7], atol=1e-6)
    np.testing.assert_allclose(second.y, [0.2, 0.8, 0.2, 0.8], atol=1e-6)
    assert (np.asarray(first.x) < np.asarray(second.x)).all()
    np.testing.assert_array_equal(np.round(np.asarray(first.x, dtype=float) + 0.17), [0, 1, 0, 1])
    assert first.customdata[3] == "training mode, pass 2, '&lt;i&gt;'"


def test_vectors_are_drawn_as_they_are():
    vector, one, mean = np.array([1.0, -2.0]), np.array([0.0, -4.0]), np.array([1.1, -1.9])
    figure = copies_bars(vector, one, mean, 1000)
    for each, values in zip(figure.data, (vector, one, mean), strict=True):
        np.testing.assert_allclose(each.y, values, atol=1e-6)
    figure = vector_bars([("one", vector), ("two", mean)])
    np.testing.assert_allclose(decoded(sent(figure, "two")["y"]), mean, atol=1e-6)
    assert figure.layout.yaxis.domain[0] > figure.layout.yaxis2.domain[1]
