"""The fourth question: depth with and without residual connections, and the race of both on the page."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.learn.questions import residuals
from dashboard.app_pages.learn.questions.figures.residuals import loss_lines
from dashboard.figures.layers import Line, layer_lines
from tests.kit import claims
from tests.kit.claims.laws import recurrent  # noqa: F401
from tests.kit.pages import array, figures, link, open_page, press
from tests.kit.waiting import wait_for
from transformer.analysis.batches import SURVEY_STREAM
from transformer.analysis.stream.depth import look_down
from transformer.foundation.claims import Claim
from transformer.model import build
from transformer.observation import observe
from transformer.training.loop import train


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


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


def test_both_are_trained_as_any_model_is_and_what_is_over_cannot_be_stopped(monkeypatch):
    """A step of one and a step of the other: each takes the very steps that it would take alone."""
    monkeypatch.setattr(residuals, "RATES", {"0.005": 4})
    race = residuals.Race(1, "0.005")
    race.wait()
    assert race.done
    assert not race.problem
    for learner, residual in zip(race.learners, (True, False), strict=True):
        assert learner.config.model.residual == residual
        alone = [step.loss for step in train(build(learner.config), learner.config)]
        assert learner.losses == pytest.approx(alone, rel=1e-5)
        assert learner.steps == [1, 2, 3, 4]
    race.stop()
    assert not race.stopped


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


def test_a_race_is_stopped_and_what_is_learned_stays(monkeypatch):
    monkeypatch.setattr(residuals, "RATES", {"0.005": 100_000})
    race = residuals.Race(1, "0.005")
    wait_for("a step of the second learner", lambda: race.learners[1].steps)
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
    assert residuals._state(race) == "Waiting for another training …"
    race.stop()
    assert not race.waiting
    assert race.stopped
    assert residuals._state(race) == "You stopped it."
    assert not race.learners[0].steps


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


@pytest.mark.parametrize("powers", [True, False])
@pytest.mark.parametrize("values", [[np.nan, 0.5], [np.inf, 0.5], [0.0, 0.5], [np.nan, np.nan]])
def test_what_is_no_number_leaves_the_axis_of_the_others(values, powers):
    """A norm of a reader's own may give it."""
    figure = layer_lines([Line("own", np.array(values))], across="layer", up="norm", powers=powers)
    ends = np.array(figure.layout.yaxis.range or [0.0, 1.0])
    assert np.isfinite(ends).all()
    assert not np.isfinite(values[1]) or ends[0] < (np.log10(values[1]) if powers else values[1]) < ends[1]


def test_both_are_trained_when_asked_for_and_the_title_says_what_came_out(heard: list[Claim]):
    app = open_page("questions", run="reverse", asked="4", deep="2")
    assert "two positions have a mean cosine of" in app.title[0].value
    press(app, "Train both")
    assert link(app) == {"run": "reverse", "asked": "4", "deep": "2", "parted": "1"}
    race = residuals.race(2, "0.005")
    race.wait()
    app.run()
    assert not app.exception
    shares = [learner.share for learner in race.learners]
    said = f"get {shares[0]:.2f} of the answer right in 6 steps, without them {shares[1]:.2f} in 6."
    assert said in app.title[0].value
    claims.judge(SimpleNamespace(), next(each for each in heard if each.sentence == app.title[0].value))
    for trace, learner in zip(figures(app)["parted"]["data"], race.learners, strict=True):
        np.testing.assert_allclose(array(trace["y"]), learner.losses, rtol=1e-6)
    app.slider(key="control-deep").set_value(3).run()
    assert link(app) == {"run": "reverse", "asked": "4", "deep": "3"}  # another model is trained when it is asked for
    assert "parted" not in figures(app)


def labelled(app: AppTest, label: str) -> Any:
    return next((button for button in app.button if button.label == label), None)


def test_a_race_can_be_stopped_on_the_page_and_begun_anew(busy):
    app = open_page("questions", run="reverse", asked="4", deep="2")
    press(app, "Train both")
    assert labelled(app, "Train both") is None
    assert any("Waiting for another training …" in caption.value for caption in app.caption)
    stopped = residuals.race(2, "0.005")
    press(app, "Stop")
    assert stopped.stopped
    assert app.session_state["parted_stopped"] is stopped
    assert residuals.race(2, "0.005") is not stopped  # what is unfinished is kept for nobody else
    assert "two positions have a mean cosine of" in app.title[0].value  # nothing is measured
    assert "parted" in figures(app)
    busy.set()
    press(app, "Train both")
    assert link(app) == {"run": "reverse", "asked": "4", "deep": "2", "parted": "1"}
    again = residuals.race(2, "0.005")
    assert again is not stopped
    again.wait()
    app.run()
    assert "in 6 steps" in app.title[0].value
    assert labelled(app, "Train both").disabled
    assert labelled(app, "Stop") is None


def test_what_breaks_a_race_is_a_sentence_on_the_page(monkeypatch):
    monkeypatch.setattr(residuals.Race, "_train", lambda race: [].pop())
    app = open_page("questions", run="reverse", asked="4", parted="1")
    residuals.race(6, "0.005").wait()
    app.run()
    assert not app.exception
    assert [warning.value for warning in app.warning] == ["Pop from empty list."]
    assert not labelled(app, "Train both").disabled
